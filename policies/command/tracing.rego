# Tracers, profilers and debuggers may run a command that policy allows. They must not
# attach to other processes, change system calls or run programs that the text does not
# show. A debugger may run a program of the workspace, with plain commands.
package fumehood.command

import data.fumehood.lib

tracers := {"strace", "ltrace", "perf", "hyperfine"}

# METADATA
# title: Tracers do not change the results of system calls
# custom:
#   rule: trace.option
#   severity: medium
#   category: processes
#   match: ["strace -e inject=openat:error=ENOENT ./x", "strace -e fault=read ./x"]
#   not_match: [
#     "strace -f ./x", "strace -c -f go test ./...", "strace -e trace=openat -o /tmp/x ls", "perf stat -r 5 make test",
#     "hyperfine --warmup 3 'rg foo'", "strace -V"
#   ]
deny contains lib.denial(
	"trace.option",
	sprintf("%s's -e %s changes the results of system calls", [input.command.program, o.value]),
	"select system calls only: `strace -e trace=openat ls`",
) if {
	input.command.program in {"strace", "ltrace"}
	some o in input.command.options
	o.name == "-e"
	regex.match(`inject|fault|^$`, o.value)
}

# METADATA
# title: Tracers may start for a command that names them
# custom:
#   rule: grant.trace
#   grants: ["strace ./x", "perf stat ls", "gdb -batch -ex run -ex bt ./x"]
#   not_grants: ["time ls"]
exec contains {"rule": "grant.trace", "kind": "trace"} if {
	input.command.place in found
	input.command.program in {"strace", "ltrace", "perf"}
}

exec contains {"rule": "grant.trace", "kind": kind} if {
	input.command.place in found
	debugging
	some kind in {"trace", "built"}
}

# METADATA
# title: gdb may run a program of the workspace with plain commands
# custom:
#   rule: debug.use
#   match: [
#     "gdb -batch -ex run -ex bt ./a.out", "gdb -q -nx --batch -ex 'break main' -ex run -ex 'info locals' -ex 'p x->y' --args build/x --flag a",
#     "gdb -batch -ex 'thread apply all bt' ./a.out core"
#   ]
#   not_match: [
#     "gdb ./a.out", "gdb -batch -ex 'shell id' ./a", "gdb -batch -ex '!id' ./a", "gdb -batch -ex 'python print(1)' ./a",
#     "gdb -batch -ex 'source x' ./a", "gdb -batch -x x ./a", "gdb -batch -p 1", "gdb -batch -ex bt ./a 1", "gdb -batch -ex run sh",
#     "gdb -batch -ex run /usr/bin/id", "gdb -batch -ex 'run; id' ./a", "gdb -batch -ex 'p $_shell(\"id\")' ./a", "gdb -batch -ex 'pipe bt | sh' ./a",
#     "gdb -batch -ex 'p system(\"id\")' ./a", "gdb -batch -ex \"$X\" ./a", "gdb -batch -ex 'attach 1' ./a", "gdb --args sh -c nc",
#     "gdb -batch -ex 'target remote x:1' ./a", "gdb -batch -ex 'thread apply all shell id' ./a"
#   ]
allow contains {"rule": "debug.use"} if {
	input.command.place in found
	debugging
}

debugging if {
	input.command.program == "gdb"
	describes_itself
}

debugging if {
	input.command.program == "gdb"
	input.command.static
	some batch in debugger_words
	batch in {"-batch", "--batch"}
	every i, w in debugger_words { debugger_word(i, w) }
	count(debugged) > 0
	count(debugged) < 3
	every path in debugged { debuggable(path) }
}

# After --args come the program, with gdb's options before it, and the program's words.
debugger_words := array.slice(input.command.argv, 0, min(debugger_ends))

debugger_ends contains count(input.command.argv)

debugger_ends contains i + 1 if {
	some i, w in input.command.argv
	has_args
	debugger_path(i, w)
	i > args_at
}

args_at := min({i | some i, w in input.command.argv; w in {"-args", "--args"}})

has_args if args_at >= 0

debugged contains w if {
	some i, w in debugger_words
	debugger_path(i, w)
}

debugger_path(i, w) if {
	not startswith(w, "-")
	not input.command.argv[i - 1] in debugger_commands
}

debugger_commands := {"-ex", "--ex", "-eval-command", "--eval-command"}

debuggable(path) if {
	contains(path, "/")
	debuggable_place(path)
}

debuggable(path) if {
	regex.match(`^core[\w.-]*$`, path)
	debuggable_place(path)
}

debuggable_place(path) if {
	some w in input.command.operands
	w.value == path
	w.place in {"workspace", "tmp"}
}

debugger_word(i, w) if debugger_path(i, w)

debugger_word(i, w) if {
	w in debugger_commands
	regex.match(debugger_command, debugger_words[i + 1])
}

debugger_word(i, _) if {
	debugger_words[i - 1] in debugger_commands
}

debugger_word(_, w) if w in {
	"-batch", "--batch", "-nx", "--nx", "-n", "-q", "-quiet", "--quiet", "-silent", "--silent", "-nh", "-args", "--args", "-return-child-result",
	"--return-child-result",
}

debugger_command := concat("", [
	`^((r|run|start|starti|set args)( [\w./=:,@%+-]+)*|(bt|backtrace|where)( (full|-?\d+))*|(thread`,
	`|frame) apply all( -[qs])? (bt|backtrace|where|info (locals|args|frame))( full)?|(info`,
	`|i) [a-z-]+( [\w$*.:]+)*|(p|print|ptype|whatis|x|output`,
	`|display)(/\w+)? [\w.>*&\[\]$: +-]*[\w.\]]|(b|break|tbreak|tb|until|advance|watch`,
	`|rwatch) [\w.:/*>-]+|(c|continue|n|next|s|step|si|stepi|ni|nexti|finish|up|down|fin|kill|k|q`,
	`|quit|thread|frame|f|delete)( \d+)?|(list|l|disas|disassemble)( [\w.:,/-]+)?|catch (throw|catch`,
	`|syscall|signal)( \w+)*|handle \w+( (no)?(stop|print|pass))*|set (pagination|confirm|width`,
	`|height|print \w+|disable-randomization|breakpoint pending|disassembly-flavor|follow-fork-mode`,
	`|detach-on-fork|logging enabled|max-value-size|backtrace limit)( \w+)?|show version)$`,
])
