# sqlite3 may query a database in the workspace or /tmp. Its dot-commands and functions write
# files, so the query must be literal.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: sqlite3 queries databases in the workspace and /tmp only
# custom:
#   rule: sqlite.query
#   severity: medium
#   category: files
#   match: [
#     "sqlite3 x.db '.shell id'", "sqlite3 x.db \".system id\"", "sqlite3 x '.load ./x'",
#     "sqlite3 x \"select writefile('/etc/x', 1)\"", "sqlite3 x \"attach '/etc/x' as y\"", "sqlite3 /etc/x.db .schema", "sqlite3 -init x y.db",
#     "sqlite3 :memory: <<'X'\n.shell id\nX", "sqlite3 :memory: <<'X'\n  .import '|id' t\nX",
#     "sqlite3 :memory: <<< \"select writefile('x', 1)\"", "sqlite3 :memory: <<X\n$(cat f)\nX", "sqlite3 :memory: <<'X' < f\nselect 1;\nX",
#     "sqlite3 \"$db\" <<'X'\nselect 1;\nX", "sqlite3 a.db \"vacuum\ninto 'b'\"",
#     "sqlite3 -cmd '.shell id' x", "sqlite3 x '.output /etc/x'", "sqlite3 x < y", "sqlite3 x < /tmp/y.sql", "sqlite3 x '.read ../y.sql'", "sqlite3"
#   ]
#   not_match: [
#     "sqlite3 /tmp/t.db 'create table t(a); select * from t;'", "sqlite3 -readonly testdata/app.db 'select count(*) from users'",
#     "sqlite3 :memory: <<'SQL'\ncreate table t(edit);\n.mode box\nselect edit from t;\nSQL", "sqlite3 :memory: <<< 'select 1'",
#     "cd build && sqlite3 :memory: 'select 1'", "sqlite3 :memory: \"select edit('x', 'id')\"", "sqlite3 x \"select load_extension('./x')\"",
#     "sqlite3 :memory: < db/schema.sql", "sqlite3 :memory: '.read db/a.sql' 'select 1'",
#     "sqlite3 testdata/app.db .schema", "sqlite3 -json a.db 'select 1'", "sqlite3 \"$db\" .tables"
#   ]
deny contains lib.denial(
	"sqlite.query",
	"sqlite3 must not write other files, or read commands that the text does not show",
	"name a database in the workspace, and write the query literally: `sqlite3 :memory: 'select 1'`",
) if {
	input.command.program == "sqlite3"
	not sqlite_plain
}

sqlite_plain if {
	every word in input.command.argv { sqlite_word(word) }
	sqlite_queried
	every r in input.command.redirects { sqlite_input(r) }
	input.command.operands[0].place in {"workspace", "tmp", "dynamic"}
}

sqlite_plain if describes_itself

sqlite_plain if {
	input.command.static
	input.command.argv in [["-version"], ["-help"]]
}

sqlite_queried if count(input.command.operands) >= 2

# Queries in a file of the workspace can be read there. Programs that they name do not start.
sqlite_queried if {
	input.command.static
	count(input.command.operands) == 1
	[r.place | some r in input.command.redirects; r.fd == 0; r.kind == "read"; r.static; regex.match(sqlite_file, r.value)] == ["workspace"]
	count([r | some r in input.command.redirects; r.fd == 0]) == 1
}

sqlite_file := `^(\./)?(\w[\w.-]*/)*\w[\w-]*\.sql$`

sqlite_word(word) if {
	startswith(word, ".read ")
	regex.match(sqlite_file, trim_prefix(word, ".read "))
}

sqlite_queried if {
	input.command.loose
	count([r | some r in input.command.redirects; r.fd == 0]) == 0
}

# The text of a here-document is the query, if nothing else is standard input. When a program starts,
# its input is not known, so all its words must be those of the text.
sqlite_queried if {
	input.command.static
	count(input.command.operands) == 1
	[r.kind | some r in input.command.redirects; r.fd == 0] in [["heredoc"], ["herestring"]]
}

sqlite_input(r) if not r.kind in {"heredoc", "herestring"}

sqlite_input(r) if {
	r.static
	every line in split(r.value, "\n") { sqlite_line(line) }
	not regex.match(sqlite_unsafe_call, r.value)
}

sqlite_line(line) if not startswith(trim_space(line), ".")

sqlite_line(line) if regex.match(sqlite_command, trim_space(line))

sqlite_word(word) if regex.match(sqlite_option, word)

sqlite_option := concat("", [
	`^--?(readonly|json|csv|column|header|noheader|line|list|box|table|markdown|html|ascii|batch|bail`,
	`|echo|quote|safe|stats|tabs|version)$`,
])

sqlite_word(word) if {
	not startswith(word, "-")
	not regex.match(sqlite_unsafe_text, word)
}

sqlite_unsafe_text := concat("", [`(?i)(^|\n)\s*\.|`, sqlite_unsafe_call])

# The programs that edit starts and the extensions that load_extension loads are refused by the kernel.
sqlite_unsafe_call := `(?is)readfile|writefile|\battach\b|\bvacuum\b.*\binto\b|\bfile:|pragma.*directory`

sqlite_word(word) if regex.match(sqlite_command, word)

sqlite_command := concat("", [
	`^\.(schema|tables|indexes|indices|databases|dump|mode \w+|headers? (on|off)|fullschema|show`,
	`|timer (on|off)|changes (on|off)|bail (on|off)|nullvalue \w+|width( \d+)+|quit|exit)( \w+)?$`,
])
