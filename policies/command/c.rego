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
# description: Words after -Wl, and -fdump- name files that the compiler's own options do not show.
# custom:
#   rule: code.output
#   match: [
#     "gcc -Wl,-Map,.npmrc a.c", "gcc -Wp,-MD,.github/x a.c", "g++ -fdump-tree-all=.npmrc a.c", "clang -Wl,-o,sub/.npmrc a.c",
#     "uv run gcc -Wl,-Map,lefthook.yml a.c", "clang -ftime-trace=.npmrc a.c"
#   ]
#   not_match: [
#     "gcc -Wl,-Map,out.map a.c", "gcc -Wl,-rpath,.libs -Wl,-rpath,. a.c", "gcc -Wp,-MMD,.deps/a.d a.c", "gcc -Wl,-Map=/tmp/x.map a.c",
#     "gcc -fdump-tree-all=dump a.c"
#   ]
deny contains lib.denial("code.output", sprintf("%q may write a control file", [word]), "name a file in the build directory") if {
	input.command.tool in {"gcc", "g++", "cc", "c++", "clang", "clang++", "rustc"}
	some i, word in input.command.argv
	regex.match(`^(-W[alp],|-f|-d|--emit|-o$|-serialize-diagnostics$)`, word)
	some part in array.concat(regex.split(`[,=]`, word), array.slice(input.command.argv, i + 1, i + 2))
	regex.match(guarded_name, part)
}

guarded_name := concat("", [
	`(?i)(^|/)(\.(git|github|vscode|idea|cargo|husky|githooks|config|circleci)(/.*)?`,
	`|\.(devcontainer|claude|cursor|mvn|yarn)(/.*)?|\.(npmrc|yarnrc.*|pypirc|envrc|mcp\.json)`,
	`|\.(gitlab-ci\.yml|pre-commit-config\.yaml|gitattributes|gitmodules|bazelrc)`,
	`|(conftest|sitecustomize|usercustomize)\.py|[^/]*\.pth|codeowners|gnumakefile`,
	`|jenkinsfile|\.?lefthook\.ya?ml|pip\.(conf|ini)|(claude|agents)\.md`,
	`|mise\.toml|rust-toolchain(\.toml)?|global\.json|renovate\.json)$`,
])

# METADATA
# title: Compilers and their linkers write no control files
# custom:
#   rule: code.output
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
