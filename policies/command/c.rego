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
# title: Compilers and their linkers write no control files
# custom:
#   rule: code.output
#   severity: medium
#   category: files
#   match: ["ar rcs .npmrc x", "swiftc -o .npmrc a.swift", "ghc -o .vscode/settings.json a.hs"]
#   not_match: ["ar rcs build/lib.a a.o", "swiftc -o app a.swift", "ghc -o out a.hs"]
deny contains lib.denial("code.output", sprintf("%q is a control file", [w.value]), "name a file in the build directory") if {
	input.command.program in {"ar", "ranlib", "ghc", "swiftc", "crystal", "zig", "nim", "dart"}
	some w in input.command.operands
	w.place in {"control", "git"}
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
#   severity: medium
#   category: code
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
