# python3, node, ruby and their like run any code, so the sandbox contains it. What is held
# here is that a reviewer saw the code: it stands in the text, or in a file of the workspace.
package fumehood.command

import data.fumehood.lib

interpreters := {"python3", "node", "ruby", "perl", "php", "lua", "luajit", "java", "Rscript", "julia", "deno", "bun", "ts-node", "tsx", "tclsh", "dart", "prove", "bats"}

# METADATA
# title: Interpreters run code of the text or of the workspace
# custom:
#   rule: code.place
#   match: ["python3 /etc/x.py", "node /opt/x.js", "python3 .git/x.py", "ruby /usr/share/x.rb", "perl ../../x.pl"]
#   not_match: ["python3 scripts/x.py", "node ./x.js", "python3 -m pytest", "python3 -c 'import os'", "python3 /tmp/x.py", "ruby -e 'puts 1' /etc/os-release"]
deny contains lib.denial("code.place", sprintf("%q is no code of the workspace", [w.value]), "run a file of the workspace, or give the code in the text") if {
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
# title: Interpreters do not read their program from standard input unseen
# custom:
#   rule: code.stdin
#   match: ["echo aWQ= | base64 -d | python3", "cat x | node -", "cat x | perl", "printf %s \"$x\" | ruby"]
#   not_match: ["python3 - <<'EOF'\nprint(1)\nEOF", "cat x | python3 -c 'import sys'", "cat x | python3 -m json.tool", "cat a | python3 scripts/x.py"]
deny contains lib.denial("code.stdin", sprintf("%s reads its program from a pipe or a file, unseen", [input.command.program]), "give the code in the text: -c, -e or a here-document") if {
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
# title: No interpreter waits for its program
# custom:
#   rule: code.prompt
#   match: ["python3", "python3 -", "python3 -q", "node -", "ruby -", "python3 /dev/stdin", "node", "php -", "tclsh", "luajit", "julia -q", "R --no-save", "ocaml", "erl", "scala", "ts-node"]
#   not_match: ["R CMD check .", "R -e '1'", "R --version", "tclsh x.tcl", "lua -v", "erl -noshell -eval 'halt()'", "python3 - <<'EOF'\nprint(1)\nEOF", "python3 --version", "node --test", "python3 -m unittest", "php -v"]
deny contains lib.denial("code.prompt", sprintf("%s gets no program", [input.command.program]), "give the code in the text: -c, -e or a here-document") if {
	input.command.program in prompting
	not input.command.stdin_from in {"heredoc", "pipe", "file"}
	not "xargs" in input.command.via
	no_program
}

prompting := {"python3", "node", "ruby", "perl", "php", "lua", "luajit", "deno", "bun", "Rscript", "R", "julia", "tclsh", "ocaml", "erl", "elixir", "scala", "swift", "ts-node", "tsx", "crystal", "runghc"}

no_program if count(input.command.argv) == 0

# Options alone bring no program either.
no_program if {
	input.command.program in {"python3", "R", "julia", "tclsh", "ocaml", "erl", "lua", "luajit", "scala"}
	input.command.tool == input.command.program
	count(input.command.operands) == 0
	every word in input.command.argv { regex.match(`^-`, word) }
	not informing
}

no_program if input.command.operands[0].value in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}

# informing holds for an option that prints something, or that gives the program.
informing if {
	some word in input.command.argv
	regex.match(`^--?(v|V|version|help|h|\?|e\S*|eval|c\S*|m\S*|f\S*|noshell|print-\S*|vnum|where|configure|help-\S*)$`, word)
}

# METADATA
# title: Code given to an interpreter is written out
# custom:
#   rule: code.dynamic
#   match: ["python3 -c \"$X\"", "node -e \"$(cat x)\"", "python3 -c \"$(base64 -d <<< aGk=)\"", "perl -e \"$X\"", "node -p \"$X\"", "php -r \"$X\"", "poetry run python -c \"$X\""]
#   not_match: ["python3 -c 'print(1)'", "python3 -c 'import sys; print(sys.argv)' \"$x\"", "python3 scripts/x.py \"$x\""]
deny contains lib.denial("code.dynamic", sprintf("the code for %s is known only when it runs", [input.command.tool]), "write the code out in single quotes") if {
	input.command.tool in interpreters
	some e in input.command.effects
	e.kind == "code"
	not e.static
}
