# A redirection may read, and write into the workspace and /tmp. It is judged wherever it
# stands, since it writes whatever the command is.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Write into the workspace and /tmp only
# custom:
#   rule: redirect.place
#   match: ["echo x > /etc/motd", "echo x > .git/hooks/pre-commit", "echo x > /dev/tcp/1.2.3.4/80", "echo x > .npmrc", "echo x > \"$f\""]
#   not_match: ["go test ./... > /tmp/out.txt 2>&1", "ls 2>/dev/null", "echo x > out.txt"]
deny contains lib.denial("redirect.place", sprintf("the redirection writes to %q: %s", [r.value, place_word(r.place)]), "write to a literal path in the workspace or under /tmp, or to standard output, which is kept") if {
	some r in input.command.redirects
	r.kind in {"write", "readwrite"}
	not r.place in lib.writable
}

place_word(place) := object.get(place_words, place, "it is no place to write")

place_words := {
	"git": "git's own files steer git",
	"control": "this file steers tools",
	"outside": "it lies outside the workspace",
	"home": "the home folder is empty and thrown away",
	"secret": "it is a device or a place for credentials",
	"dynamic": "only run time knows where it lies",
	"url": "it is no path",
}
