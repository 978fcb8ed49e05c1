# Compilers, cmake, ctest and valgrind may build and test what is in the workspace. Some
# of their options load plugins or start programs that the text does not show; those are
# denied.
package fumehood.command

import data.fumehood.lib

program_option contains word if {
	input.command.program == "cmake"
	some word in input.command.argv
	regex.match(`^-DCMAKE_\w*(LAUNCHER|MAKE_PROGRAM|TOOLCHAIN_FILE|PROJECT_\w*INCLUDE\w*|RULE_LAUNCH\w*)`, word)
}

# METADATA
# title: A compiler's linker and preprocessor write no files whose names begin with a dot
# description: Words after -Wl, and -fdump- name files that the compiler's own options do not show.
# custom:
#   rule: code.output
#   match: ["gcc -Wl,-Map,.npmrc a.c", "gcc -Wp,-MD,.github/x a.c", "g++ -fdump-tree-all=.npmrc a.c", "clang -Wl,-o,sub/.npmrc a.c"]
#   not_match: ["gcc -Wl,-Map,out.map a.c", "gcc -Wl,-rpath,.libs -Wl,-rpath,. a.c", "gcc -Wl,-Map=/tmp/x.map a.c", "gcc -fdump-tree-all=dump a.c"]
deny contains lib.denial("code.output", sprintf("%q may write a control file", [word]), "name a file in the build directory") if {
	input.command.program in {"gcc", "g++", "cc", "c++", "clang", "clang++"}
	some word in input.command.argv
	regex.match(`^(-W[alp],|-fdump-)`, word)
	some part in regex.split(`[,=]`, word)
	regex.match(`(^|/)(\.[A-Za-z][^/]*|conftest\.py)($|/)`, part)
	part != ".libs"
}

deny contains lib.denial("code.target", "cmake must not install", "build and test in the build directory") if {
	input.command.program == "cmake"
	some i, word in input.command.argv
	regex.match(`^(--install|install)$`, word)
	i >= 0
}

# METADATA
# title: valgrind may only run programs in the workspace
# description: valgrind loads the program itself, so that no start of it is seen.
# custom:
#   rule: valgrind.program
#   match: ["valgrind --trace-children=yes sh -c nc", "valgrind bash -c id", "valgrind factor 6", "valgrind /usr/lib/x"]
#   not_match: ["valgrind --leak-check=full ./build/test", "valgrind ./x", "valgrind --version"]
deny contains lib.denial(
	"valgrind.program",
	"valgrind would look for the program outside the workspace",
	"name a program in the workspace by its path: `valgrind ./x`",
) if {
	input.command.program == "valgrind"
	input.command.operands[0].static
	not regex.match(`^([^/]+|/workspace|/tmp)/`, input.command.operands[0].value)
}
