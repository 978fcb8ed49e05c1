# Compilers, cmake, ctest and valgrind may build and test what the workspace holds. Their
# options load plugins and start programs, which are refused where the text hides them.
package fumehood.command

import data.fumehood.lib

program_option contains word if {
	input.command.program in {"gcc", "g++", "cc", "c++", "clang", "clang++"}
	some word in input.command.argv
	regex.match(`^(-B.*|-Xclang|-load|-wrapper|-iplugindir.*|-specs.*|@.*|-Wl,.*(-plugin|--dynamic-linker|-I).*|-no-canonical-prefixes-x)$`, word)
}

# What -f and -W take names no file and no plugin.
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

deny contains lib.denial("code.target", "cmake would install", "build and test in the build folder") if {
	input.command.program == "cmake"
	some i, word in input.command.argv
	regex.match(`^(--install|install)$`, word)
	i >= 0
}

# METADATA
# title: valgrind traces a program of the workspace or a known tool
# custom:
#   rule: valgrind.program
#   match: ["valgrind --trace-children=yes sh -c nc", "valgrind bash -c id", "valgrind --db-attach=yes ./x", "valgrind --log-file='|sh' ./x"]
#   not_match: ["valgrind --leak-check=full ./build/test", "valgrind ./x"]
deny contains lib.denial("valgrind.program", "valgrind starts another program", "name a program of the workspace") if {
	input.command.program == "valgrind"
	some word in input.command.argv
	regex.match(`^(sh|bash|dash|zsh|env|/|curl|wget|nc|ssh|python3?|perl|sudo|xargs)$|^/|^--(db-|log-socket|log-file=[|/])`, word)
	not startswith(word, "/tmp/")
	not startswith(word, "/workspace/")
}
