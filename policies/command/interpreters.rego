# python3, node, ruby and similar tools run any code; the sandbox contains it. These rules
# require that a reviewer can see the code: in the text, or in a file in the workspace.
package fumehood.command

import data.fumehood.lib

interpreters := {
	"python3", "node", "ruby", "perl", "php", "lua", "luajit", "java", "Rscript", "julia", "deno", "bun", "ts-node", "tsx", "tclsh", "dart", "prove",
	"bats",
}

# METADATA
# title: Interpreters run only code from the text or the workspace
# custom:
#   rule: code.place
#   severity: medium
#   category: code
#   match: ["python3 /etc/x.py", "node /opt/x.js", "python3 .git/x.py", "ruby /usr/share/x.rb", "perl ../../x.pl"]
#   not_match: ["python3 scripts/x.py", "node ./x.js", "python3 -m pytest", "python3 -c 'import os'", "python3 /tmp/x.py",
#     "ruby -e 'puts 1' /etc/os-release"]
deny contains lib.denial("code.place", sprintf("%q is not in the workspace", [w.value]), "run a file in the workspace, or write the code in the command") if {
	input.command.program in interpreters
	w := input.command.operands[0]
	not inline
	not w.place in lib.loadable
	not w.place in {"dynamic"}
}

inline if {
	some word in input.command.argv
	regex.match(`^-[a-zA-Z0-9]*[cemrpf]$|^--eval$|^--print$|^-[lpnai]*e.*`, word)
}

# METADATA
# title: Interpreters must not read their program from a pipe or a file
# custom:
#   rule: code.stdin
#   severity: medium
#   category: code
#   match: ["echo aWQ= | base64 -d | python3", "cat x | node -", "cat x | perl", "printf %s \"$x\" | ruby"]
#   not_match: ["python3 - <<'EOF'\nprint(1)\nEOF", "cat x | python3 -c 'import sys'", "cat x | python3 -m json.tool", "cat a | python3 scripts/x.py"]
deny contains lib.denial(
	"code.stdin",
	sprintf("%s reads its program from a pipe or a file that the text does not show", [input.command.program]),
	"write the code in the command, as in `python3 -c 'print(1)'`, or in a here-document",
) if {
	input.command.program in (interpreters - {"java"})
	input.command.stdin_from in {"pipe", "file"}
	not "xargs" in input.command.via
	reads_program
}

reads_program if {
	count(input.command.operands) == 0
	not inline
	not "--version" in input.command.argv
}

reads_program if {
	input.command.operands[0].value in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
	not inline
}

# METADATA
# title: Interpreters must be given a program
# custom:
#   rule: code.prompt
#   severity: low
#   category: usage
#   match: [
#     "python3", "python3 -", "python3 -q", "node -", "ruby -", "python3 /dev/stdin", "node", "php -", "tclsh", "luajit", "julia -q", "R --no-save",
#     "ocaml", "erl", "scala", "ts-node"
#   ]
#   not_match: [
#     "R CMD check .", "R -e '1'", "R --version", "tclsh x.tcl", "lua -v", "erl -noshell -eval 'halt()'", "python3 - <<'EOF'\nprint(1)\nEOF",
#     "python3 --version", "node --test", "python3 -m unittest", "php -v"
#   ]
deny contains lib.denial(
	"code.prompt",
	sprintf("%s has no program to run", [input.command.program]),
	"write the code in the command: -c, -e or a here-document",
) if {
	input.command.program in prompting
	not input.command.stdin_from in {"heredoc", "pipe", "file"}
	not "xargs" in input.command.via
	no_program
}

prompting := {
	"python3", "node", "ruby", "perl", "php", "lua", "luajit", "deno", "bun", "Rscript", "R", "julia", "tclsh", "ocaml", "erl", "elixir", "scala",
	"swift", "ts-node", "tsx", "crystal", "runghc",
}

no_program if count(input.command.argv) == 0

# Options alone do not give a program either.
no_program if {
	input.command.program in {"python3", "R", "julia", "tclsh", "ocaml", "erl", "lua", "luajit", "scala"}
	input.command.tool == input.command.program
	count(input.command.operands) == 0
	every word in input.command.argv { regex.match(`^-`, word) }
	not informing
}

no_program if input.command.operands[0].value in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}

# informing is true for an option that prints something, or that gives the program.
informing if {
	some word in input.command.argv
	regex.match(not_interactive_option, word)
}

not_interactive_option := concat("", [
	`^--?(v|V|version|help|h|\?|e\S*|eval|c\S*|m\S*|f\S*|noshell|print-\S*|vnum|where|configure`,
	`|help-\S*)$`,
])

# METADATA
# title: Code for an interpreter is written literally
# custom:
#   rule: code.dynamic
#   severity: medium
#   category: code
#   match: [
#     "python3 -c \"$X\"", "node -e \"$(cat x)\"", "python3 -c \"$(base64 -d <<< aGk=)\"", "perl -e \"$X\"", "node -p \"$X\"", "php -r \"$X\"",
#     "poetry run python -c \"$X\""
#   ]
#   not_match: ["python3 -c 'print(1)'", "python3 -c 'import sys; print(sys.argv)' \"$x\"", "python3 scripts/x.py \"$x\""]
deny contains lib.denial(
	"code.dynamic",
	sprintf("the code for %s is known only at run time", [input.command.tool]),
	"write the code literally, in single quotes",
) if {
	input.command.tool in interpreters
	some e in input.command.effects
	e.kind == "code"
	not e.static
}
