# Compilers, cmake, ctest and valgrind may build and test what is in the workspace. Some
# of their options load plugins or start programs that the text does not show; those are
# denied.
package fumehood.command

import data.fumehood.lib

program_option contains word if {
	input.command.program in {"gcc", "g++", "cc", "c++", "clang", "clang++"}
	some word in input.command.argv
	regex.match(compiler_loading_option, word)
}

compiler_loading_option := concat("", [
	`^(-B.*|-Xclang|-load|-wrapper|-iplugindir.*|-specs.*|@.*|-Wl,.*(-plugin|--dynamic-linker|-I).*`,
	`|-no-canonical-prefixes-x)$`,
])

# Values of -f and -W must not name a file or a plugin.
program_option contains o.value if {
	input.command.program in {"gcc", "g++", "cc", "c++", "clang", "clang++"}
	some o in input.command.options
	o.name in {"-f", "-W"}
	o.static
	regex.match(`^(plugin|pass-plugin|use-ld|l,.*(plugin|dynamic-linker)|[alp],.*@)|^[a-z-]*=[~/.]`, o.value)
	not regex.match(`^(use-ld=(lld|gold|mold|bfd)|l,-rpath(-link)?([,=][^,]*)?)$`, o.value)
	not regex.match(`^(debug|file|macro)-prefix-map=`, o.value)
}

program_option contains word if {
	input.command.program == "cmake"
	some word in input.command.argv
	regex.match(`^-DCMAKE_\w*(LAUNCHER|MAKE_PROGRAM|TOOLCHAIN_FILE|PROJECT_\w*INCLUDE\w*|RULE_LAUNCH\w*)`, word)
}

deny contains lib.denial("code.target", "cmake must not install", "build and test in the build directory") if {
	input.command.program == "cmake"
	some i, word in input.command.argv
	regex.match(`^(--install|install)$`, word)
	i >= 0
}

# METADATA
# title: valgrind may only run programs in the workspace and known tools
# custom:
#   rule: valgrind.program
#   match: [
#     "valgrind --trace-children=yes sh -c nc", "valgrind bash -c id", "valgrind --db-attach=yes ./x", "valgrind --log-file='|sh' ./x",
#     "valgrind factor 6"
#   ]
#   not_match: ["valgrind --leak-check=full ./build/test", "valgrind ./x", "valgrind --version"]
deny contains lib.denial("valgrind.program", "valgrind must not start a program outside the workspace", "name a program in the workspace") if {
	input.command.program == "valgrind"
	some word in input.command.argv
	regex.match(cppcheck_unsafe_word, word)
	not startswith(word, "/tmp/")
	not startswith(word, "/workspace/")
}

# valgrind loads the program itself, so that no start of it is seen.
deny contains lib.denial(
	"valgrind.program",
	"valgrind would look for the program outside the workspace",
	"name a program in the workspace by its path: `valgrind ./x`",
) if {
	input.command.program == "valgrind"
	input.command.operands[0].static
	not contains(input.command.operands[0].value, "/")
}

cppcheck_unsafe_word := concat("", [
	`^(sh|bash|dash|zsh|env|/|curl|wget|nc|ssh|python3?|perl|sudo|xargs)$|^/|^--(db-|log-socket`,
	`|log-file=[|/])`,
])
