package fumehood.exec

import data.fumehood.lib

# Most tools start no other program, or a few that are known: a linker, a decompressor.
# policies/options.txt lists them. What a tool is made to start besides, by an option, a
# file, a variable or a hole in one of these, does not start.

# METADATA
# title: Tools start only the programs that they are known to start
# description: >-
#   Runners, builders, shells and the repository's own programs start any program that the other rules allow. Every other
#   tool has a short list, which applies to what those programs start, too. A command that was granted built may start the
#   repository's own programs from any tool.
# custom:
#   rule: exec.child
#   severity: high
#   category: evasion
#   match: [
#     {path: /usr/bin/id, chain: [rg], under: rg},
#     {path: /usr/bin/id, chain: [sqlite3], under: sqlite3}, {path: /usr/bin/dash, chain: [sqlite3], under: sqlite3, grants: [built]},
#     {path: /usr/bin/id, chain: [tar, sh], under: tar, from: /usr/bin/dash}, {path: /usr/bin/python3.11, chain: [gcc], under: gcc},
#     {path: /usr/bin/id, chain: [go], under: go tool, grants: [built]},
#     {path: /workspace/x, layer: written, same: [/usr/bin/id], chain: [zip], under: zip, grants: [built]},
#     {path: /usr/bin/busybox, argv: [id], chain: [tar], under: tar}
#   ]
#   not_match: [
#     {path: /usr/bin/id}, {path: /usr/bin/gzip, chain: [tar], under: tar}, {path: /usr/bin/dash, chain: [tar], under: tar},
#     {path: /usr/bin/x86_64-linux-gnu-ld.bfd, chain: [gcc, collect2], under: gcc}, {path: /usr/bin/busybox, argv: [gzip, -d], chain: [tar], under: tar},
#     {path: /workspace/a.out, layer: written, chain: [gdb, sh], under: gdb, grants: [built]},
#     {path: /usr/bin/dash, script: /usr/bin/gunzip, chain: [tar], under: tar}
#   ]
deny contains lib.denial(
	"exec.child",
	sprintf("%s must not start %s%s", [input.under, input.path, through]),
	sprintf("run it in a command of its own; %s starts other programs only if policy lists them", [input.under]),
) if {
	input.under != ""
	not input.listed
	not own_program
	input.script == "" # else it is the interpreter of a script that was decided
}

own_program if {
	input.layer in {"workspace", "written"}
	count(input.same) == 0
}

default through := ""

through := sprintf(", through %s", [concat(", ", array.slice(input.chain, 1, 99))]) if count(input.chain) > 1
