# A redirection may read, and write into the workspace and /tmp. It is checked for every
# command, since it writes whatever the command is.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Redirections write to the workspace and /tmp only
# custom:
#   rule: redirect.place
#   severity: medium
#   category: files
#   match: ["echo x > /etc/motd", "echo x > .git/hooks/pre-commit", "echo x > /dev/tcp/1.2.3.4/80", "echo x > .npmrc", "echo x > \"$f\""]
#   not_match: ["go test ./... > /tmp/out.txt 2>&1", "ls 2>/dev/null", "echo x > out.txt"]
deny contains lib.denial(
	"redirect.place",
	sprintf("the redirection writes to %q: %s", [r.value, place_word(r.place)]),
	"write to a literal path in the workspace or under /tmp, or to standard output, which is recorded",
) if {
	some r in input.command.redirects
	r.kind in {"write", "readwrite"}
	not r.place in lib.writable
	not in_home(r)
}

# home.use denies it.
in_home(r) if {
	r.value == ""
	some h in input.command.homes
	not home_reader(h)
}

place_word(place) := object.get(place_words, place, "it must not be written")

place_words := {
	"git": "git's own files control git",
	"control": "this file controls tools",
	"outside": "it is outside the workspace",
	"home": "the home directory is empty and discarded",
	"secret": "it is a device, or may contain credentials",
	"dynamic": "the path is known only at run time",
	"url": "it is not a path",
}
