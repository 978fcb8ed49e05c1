package fumehood.command

test_sqlite_a_query if allowed("sqlite3 a.db 'select 1'") == {"text.judged"}

test_sqlite_a_program if denied("sqlite3 a.db '.shell id'") == {"sqlite.query"}
