# sqlite3 may query a database in the workspace or /tmp. Its dot-commands run programs, and
# its functions load and write files, so the query must be literal.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: sqlite3 queries databases in the workspace and /tmp only
# custom:
#   rule: sqlite.query
#   match: [
#     "sqlite3 x.db '.shell id'", "sqlite3 x.db \".system id\"", "sqlite3 x '.load ./x'", "sqlite3 x \"select load_extension('./x')\"",
#     "sqlite3 x \"select writefile('/etc/x', 1)\"", "sqlite3 x \"attach '/etc/x' as y\"", "sqlite3 /etc/x.db .schema", "sqlite3 -init x y.db",
#     "sqlite3 -cmd '.shell id' x", "sqlite3 x '.output /etc/x'", "sqlite3 x < y", "sqlite3"
#   ]
#   not_match: [
#     "sqlite3 /tmp/t.db 'create table t(a); select * from t;'", "sqlite3 -readonly testdata/app.db 'select count(*) from users'",
#     "sqlite3 testdata/app.db .schema", "sqlite3 -json a.db 'select 1'", "sqlite3 \"$db\" .tables"
#   ]
deny contains lib.denial(
	"sqlite.query",
	"sqlite3 must not run programs, load code or write other files",
	"write the database file in the workspace and the query literally",
) if {
	input.command.program == "sqlite3"
	not sqlite_plain
}

sqlite_plain if {
	every word in input.command.argv { sqlite_word(word) }
	sqlite_queried
	input.command.operands[0].place in {"workspace", "tmp", "dynamic"}
}

sqlite_queried if count(input.command.operands) >= 2

sqlite_queried if input.command.loose

sqlite_word(word) if regex.match(sqlite_option, word)

sqlite_option := concat("", [
	`^--?(readonly|json|csv|column|header|noheader|line|list|box|table|markdown|html|ascii|batch|bail`,
	`|echo|quote|safe|stats|tabs|version)$`,
])

sqlite_word(word) if {
	not startswith(word, "-")
	not regex.match(sqlite_unsafe_text, word)
}

sqlite_unsafe_text := concat("", [
	`(?i)(^|\n)\s*\.|load_extension|readfile|writefile|\battach\b|\bvacuum\b.*\binto\b`,
	`|\bfts3_tokenizer|fsdir|lsdir|\bfile:|pragma.*(directory|module)|\bzipfile`,
])

sqlite_word(word) if regex.match(`^\.(schema|tables|indexes|indices|databases|dump|mode \w+|headers (on|off)|fullschema|show)( \w+)?$`, word)
