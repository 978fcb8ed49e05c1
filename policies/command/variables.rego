# Variables control loaders, shells and tools as options do, but less visibly. Variables
# that are known to name programs, code or paths are denied, except for plain values.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Variables that control loaders, shells, interpreters or tools are denied
# custom:
#   rule: env.steering
#   match: [
#     "LOCPATH=/tmp/x ls", "TMPDIR=/etc mktemp", "XDG_CONFIG_HOME=/tmp/x git log", "TAR_OPTIONS=--x tar cf a b", "ERL_FLAGS='-eval x' erl",
#     "PYTHONPATH=/tmp/x pytest",
#     "PATH=$PWD/bin:$PATH npm test", "LD_LIBRARY_PATH=build/lib go test ./...", "VITE_BINARY=x npm test",
#     "RUSTFLAGS='-Clinker=./x' cargo build", "CFLAGS=-fplugin=./x.so make",
#     "NODE_OPTIONS='--max-old-space-size=1 --require=./x' node a", "SOME_TOOL_RC=x ls", "THING=/etc/x go test", "FC=./x go build",
#     "GOWORK=/tmp/x/go.work go build", "LEX=./x make", "LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", "export GIT_PAGER=x",
#     "NODE_OPTIONS=--require=./x.js npm test"
#   ]
#   not_match: [
#     "CC=clang make", "CXX=g++-12 cmake -B build", "LD_LIBRARY_PATH=build/lib ./t", "PATH=$PWD/node_modules/.bin:$PATH npm test",
#     "GIT_TRACE=1 git status", "DATABASE_URL=sqlite:///t.db npm test", "VITE_API_MODE=mock npm test",
#     "CI=1 go test ./...", "FOO=bar ./run.sh", "PYTHONPATH=src pytest", "x=1", "GOOS=$os go vet ./...", "PYTHONPATH=\"$PWD/src\" pytest",
#     "UPDATE_GOLDEN=1 go test ./...", "DB_URL=sqlite:////tmp/x.db pytest", "RUSTFLAGS='-D warnings' cargo check",
#     "NODE_OPTIONS=--max-old-space-size=4096 npm test", "CFLAGS='-fsanitize=address -g' make", "env -i PATH=/usr/bin:/bin go version"
#   ]
deny contains lib.denial("env.steering", sprintf("%s %s", [a.name, lib.why_env(a.name)]), "remove the variable, or write the option on the command line") if {
	some a in input.command.assigns
	lib.steers(a.name)
	not allowed_assign(a)
}

deny contains lib.denial(
	"env.steering",
	sprintf("%s must not name %q", [a.name, a.value]),
	"remove the variable, or name a path in the workspace or under /tmp",
) if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	lib.elsewhere(a.value)
}

deny contains lib.denial("env.steering", sprintf("%s may name a program to run", [a.name]), "remove the variable") if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	regex.match(`^[A-Z][A-Z0-9]{0,7}$`, a.name)
	regex.match(`^\.{0,2}/|^\.\.`, a.value)
	not a.place in {"tmp", "null"}
}

allowed_assign(a) if {
	a.static
	lib.env_ok(a.name, a.value)
}

allowed_assign(a) if a.name in lib.any_value

# The value that a program gets is checked when the program starts.
allowed_assign(a) if {
	not a.static
	a.name in lib.judged_values
}

# read -r with IFS is the only way to split a line; pkg/parse refuses IFS elsewhere.
allowed_assign(a) if {
	a.name == "IFS"
	a.static
	input.command.program in {"read", "mapfile", "readarray"}
}

allowed_assign(a) if {
	not a.exported
	a.name in {"GO", "GOFILES", "GOPKGS", "PYTHON", "NODE_VERSION"}
}

# A program of the repository may load the libraries that were built with it.
allowed_assign(a) if {
	a.name == "LD_LIBRARY_PATH"
	a.static
	input.command.place == "workspace"
	every part in split(a.value, ":") { built_libraries(part) }
}

built_libraries(part) if {
	lib.code_path(part)
	not part in {"", "."}
}

# Directories in which package managers install tools may come first in PATH. What is found
# there is one of the repository's programs, and is decided as that. The value that a program gets
# is checked when it starts.
allowed_assign(a) if {
	a.name == "PATH"
	not a.static
	startswith(a.value, "$PWD/")
}

allowed_assign(a) if {
	a.name == "PATH"
	a.static
	input.proposal.form == "argv"
	every part in split(a.value, ":") { path_part(part) }
}

path_part(part) if lib.env_ok("PATH", part)

path_part(part) if regex.match(`^/workspace/([\w-][\w.-]*/)*(node_modules/\.bin|\.?venv/bin|vendor/bin)$`, part)

# Settings of test runners and bundlers that are words and not the name of a program.
allowed_assign(a) if {
	a.static
	input.command.starts == "any"
	regex.match(`^(VITE|NX|TURBO|JEST|PLAYWRIGHT|RSPEC|TOX)_`, a.name)
	not regex.match(named_by_end, a.name)
	regex.match(`^[\w.,:+@ -]*$`, a.value)
}

named_by_end := concat("", [
	`(?i)^.*(PATH|OPTS?|OPTIONS|FLAGS|ARGS|CMD|COMMAND|EXEC|EXE|BIN|CONF|CONFIG|RC|FILE|PRELOAD|LIBS?`,
	`|MODULES|PLUGINS?|LOADER|WRAPPER|COMPILER|LAUNCHER|SHELL|EDITOR|PAGER|HOOKS?|BINARY|PROGRAM`,
	`|INTERPRETER|REGISTRY|MIRROR|INIT|STARTUP|HANDLER|PROXY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|KEY`,
	`|RUNNER|REPORTERS?|HOME|DIR)$`,
])

# METADATA
# title: A tool that runs no code of the repository gets only variables that are known to be harmless
# description: >-
#   Other variables can name a program, options or a file of code. Runners and the repository's programs may have any that
#   does not control a tool.
# custom:
#   rule: env.tool
#   match: [
#     "GREP='prog x;:' zgrep x a.gz", "ZIP='r -T -TT prog' zip a b", "PYTHONPATH=dir yq . a.yaml", "FOO=bar zgrep x a.gz", "CLASSPATH=lib javac A.java",
#     "PERL5LIB=lib lcov --version", "UNKNOWN=$x sort a"
#   ]
#   not_match: [
#     "LC_ALL=C sort a", "FOO=bar make", "GREP=x npm test", "PYTHONPATH=src pytest", "TZ=UTC date", "FOO=bar ./run.sh", "FOO=bar", "export FOO=bar",
#     "GIT_PAGER=cat git log", "FOO=1 bash -c 'ls'"
#   ]
deny contains lib.denial(
	"env.tool",
	sprintf("%s must not have the variable %s, which is not known to be harmless there", [input.command.program, a.name]),
	"remove the variable, or set it only for the command that needs it",
) if {
	input.command.starts != "any"
	input.proposal.form != "argv" # at a start, these are all variables that the text exported
	not input.command.program in lib.builtins
	not input.command.program in lib.wrappers
	some a in input.command.assigns
	a.exported
	not harmless(a)
	not steered(a)
}

# steered is true for the variables that env.steering denies.
steered(a) if {
	lib.steers(a.name)
	not allowed_assign(a)
}

harmless(a) if {
	allowed_assign(a)
	not a.name in lib.code_paths
}

# METADATA
# title: Tools that start other programs keep the sandbox's home directory
# description: Files under another HOME configure npm, python and go, and an archive or an earlier command can put them there.
# custom:
#   rule: env.home
#   match: ["HOME=/tmp npm test", "export HOME=/tmp; python3 -c 'print(1)'", "env HOME=/tmp go test ./..."]
#   not_match: ["HOME=/tmp git status", "env -i HOME=/tmp PATH=/usr/bin:/bin go version", "npm test"]
deny contains lib.denial(
	"env.home",
	sprintf("%s reads settings that name programs from files in HOME", [input.command.program]),
	"remove HOME: the sandbox has a home directory that commands can write to",
) if {
	input.command.home_set
	input.command.starts == "any"
	input.command.place in {"lookup", "system", "workspace", "tmp"}
	not input.command.program in lib.wrappers
	not input.command.program in lib.builtins
}
