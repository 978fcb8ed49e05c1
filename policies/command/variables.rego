# Variables control loaders, shells and tools as options do, but less visibly. Variables
# that are known to name programs, code or paths are denied, except for plain values.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Variables that control loaders, shells, interpreters or tools are denied
# custom:
#   rule: env.steering
#   severity: high
#   category: loader
#   floor: true
#   match: [
#     "LOCPATH=/tmp/x ls", "TMPDIR=/etc mktemp", "XDG_CONFIG_HOME=/tmp/x git log", "TAR_OPTIONS=--x tar cf a b", "ERL_FLAGS='-eval x' erl",
#     "PYTHONPATH=/tmp/../etc pytest", "PYTHONPATH=/tmp pytest", "PYTHONPATH=/tmp/. pytest",
#     "export PYTHONPATH=/tmp/x; black .", "PYTHONPATH=/tmp/x bash -c 'black .'",
#     "PATH=/opt/x/bin:$PATH npm test", "BROWSER=./x npm start", "PATH=/tmp/bin:$PATH npm test", "PATH=$PWD/../bin:$PATH npm test",
#     "LD_LIBRARY_PATH=build/lib go vet ./...", "LD_LIBRARY_PATH=build/lib timeout 9 pytest", "LD_LIBRARY_PATH=/tmp/lib ./t",
#     "LD_LIBRARY_PATH=/tmp/lib pytest", "LD_LIBRARY_PATH=. pytest", "VITE_BINARY=x npm test",
#     "RUSTFLAGS='-Clinker=./x' cargo build", "CFLAGS=-fplugin=./x.so make",
#     "NODE_OPTIONS='--max-old-space-size=1 --require=./x' node a", "SOME_TOOL_RC=x ls", "THING=/etc/x go test", "FC=./x go build",
#     "GOWORK=/tmp/x/go.work go build", "LEX=./x make", "LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", "export GIT_PAGER=x",
#     "NODE_OPTIONS=--require=./x.js npm test", "export GREP='prog x;:'; zgrep x a.gz", "LSB_OS_RELEASE=x npm test",
#     "RM=prog make clean", "GOCOVERDIR=.git/hooks ./t", "TMPDIR=.github npm test", "COVERAGE_FILE=.npmrc coverage run x.py",
#     "GTEST_OUTPUT=json:.vscode/settings.json ./t",
#     "GCOV_PREFIX=.git ./t", "DATABASE_URL='postgres://localhost/x?host=x.example' npm test",
#     "API_TOKEN=ghp_x npm test", "ASAN_OPTIONS=external_symbolizer_path=/tmp/x ./t", "ASAN_OPTIONS=log_path=.npmrc ./t",
#     "JAVA_HOME=/usr/lib/jvm/.. ./gradlew test",
#     "export YACC='prog %s'; make", "BATS_FORMATTER=./x bats t"
#   ]
#   not_match: [
#     "PYTHONPATH=/tmp/base/src pytest", "CLASSPATH=/tmp/out java A", "LD_LIBRARY_PATH=/tmp/b/lib /tmp/b/t",
#     "LD_LIBRARY_PATH=build/lib pytest", "LD_LIBRARY_PATH=$PWD/build/lib go test ./...",
#     "CC=clang make", "CXX=g++-12 cmake -B build", "LD_LIBRARY_PATH=build/lib ./t", "export LD_LIBRARY_PATH=$PWD/build/lib; ./t",
#     "PATH=$PWD/node_modules/.bin:$PATH npm test", "PATH=./node_modules/.bin:$PATH npm test", "export PATH=$PWD/bin:$PATH; npm test", "CC='gcc -O2' make",
#     "PATH=/usr/local/go/bin:$PATH go version", "NODE_NO_WARNINGS=1 npx mocha", "BROWSER=none npm start",
#     "GIT_TRACE=1 git status", "DATABASE_URL=sqlite:///t.db npm test", "VITE_API_MODE=mock npm test",
#     "CI=1 go test ./...", "FOO=bar ./run.sh", "LINT=1 make", "PYTHONPATH=src pytest", "x=1",
#     "CI_CONFIG=.github/workflows/ci.yml ./t", "GOOS=$os go vet ./...", "PYTHONPATH=\"$PWD/src\" pytest",
#     "UPDATE_GOLDEN=1 go test ./...", "DB_URL=sqlite:////tmp/x.db pytest", "RUSTFLAGS='-D warnings' cargo check",
#     "API_TOKEN=dummy npm test", "AWS_SECRET_ACCESS_KEY=test pytest", "ASAN_OPTIONS=detect_leaks=0:log_path=/tmp/asan ./t",
#     "NODE_OPTIONS=--max-old-space-size=4096 npm test", "CFLAGS='-fsanitize=address -g' make", "env -i PATH=/usr/bin:/bin go version"
#   ]
deny contains lib.denial("env.steering", lib.steering_message(a.name), lib.env_fix(a.name)) if {
	some a in input.command.assigns
	lib.steers(a.name)
	not allowed_assign(a)
}

deny contains lib.denial(
	"env.steering",
	sprintf("%s must not name %q", [a.name, a.value]),
	path_instead(a.name),
) if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	leads_elsewhere(a)
}

leads_elsewhere(a) if lib.elsewhere(a.value)

leads_elsewhere(a) if guarded_directory(a)

deny contains lib.denial("env.steering", sprintf("%s may name a program to run", [a.name]), "remove the variable") if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	names_program(a.name)
	regex.match(`^\.{0,2}/|^\.\.`, a.value)
	not a.place in {"tmp", "null"}
}

names_program(name) if regex.match(`^[A-Z][A-Z0-9]{0,7}$`, name)

path_instead(name) := "remove the variable, or name a path under /tmp" if {
	names_program(name)
} else := "remove the variable, or name a path in the workspace or under /tmp"

allowed_assign(a) if {
	a.static
	lib.env_ok(a.name, a.value)
	not guarded_directory(a)
}

guarded_directory(a) if lib.guarded_output(a.name, a.place)

# Code that the run made below /tmp is for a command that runs the repository's code, and only for that one: what a
# text exports, later commands have, too.
allowed_assign(a) if {
	a.static
	a.name in lib.made_paths
	input.command.starts == "any"
	not input.command.program in (lib.builtins | lib.wrappers)
	every part in split(a.value, ":") { lib.made_path(part) }
}

allowed_assign(a) if a.name in lib.any_value

allowed_assign(a) if {
	a.static
	lib.only_credential(a.name)
	lower(a.value) in lib.no_secrets
}

# The value that a program gets is checked when the program starts.
allowed_assign(a) if {
	not a.static
	a.name in lib.judged_values
	not guarded_directory(a)
}

# A new directory has no settings, and stays so if no other command of the text can write there.
allowed_assign(a) if {
	a.name in lib.settings_homes
	not a.static
	a.value == ""
	a.place == "tmp"
	count({name | some name in input.proposal.programs} - {"mktemp", "timeout", "env", "nice"}) < 2
}

# HOME="$HOME" changes nothing. Whatever gave HOME another value before is judged itself.
allowed_assign(a) if {
	a.name == "HOME"
	a.place == "home"
	a.value in own_home_values
}

own_home_values := {"", "/home/fumehood"}

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

# Directories of the workspace may be in PATH. What is found there is one of the repository's
# programs, and is decided as that when it starts. Of the PATH that a program gets, only the
# directories that the sandbox's own PATH lacks are judged (see package lineage).
allowed_assign(a) if {
	a.name == "PATH"
	a.static
	every part in split(a.value, ":") { path_part(part) }
}

allowed_assign(a) if {
	a.name == "PATH"
	not a.static
	every part in split(a.value, ":") { path_searched(part) }
}

path_searched(part) if searched(part, "$PATH")

path_searched(part) if lib.env_ok("PATH", part)

path_part(part) if lib.env_ok("PATH", part)

path_part(part) if workspace_directory(part)

# A program of the repository may load the libraries that were built with it. Which programs get
# what a text exports is decided at each of them, by env.library.
allowed_assign(a) if {
	a.name == "LD_LIBRARY_PATH"
	takes_libraries
	a.static
	every part in split(a.value, ":") { library_part(part) }
}

allowed_assign(a) if {
	a.name == "LD_LIBRARY_PATH"
	takes_libraries
	not a.static
	every part in split(a.value, ":") { library_searched(part) }
}

takes_libraries if own_libraries

takes_libraries if library_runner

# A runner runs the repository's code anyway. It gets the directories that it is started with.
library_runner if {
	input.command.starts == "any"
	not launches
	not input.command.program in lib.builtins
}

own_libraries if input.command.place in {"workspace", "tmp"}

own_libraries if input.command.program in {"export", "env", ""}

library_part(part) if workspace_directory(part)

# The working directory of a program of the repository, and the workspace.
library_part(part) if {
	part in {".", "./"}
	own_libraries
	input.proposal.cwd.place == "workspace"
}

library_part("/workspace") if own_libraries

# Libraries that the run made, for a program that it made.
library_part(part) if {
	input.command.place == "tmp"
	lib.made_path(part)
}

library_searched(part) if searched(part, "$LD_LIBRARY_PATH")

library_searched(part) if library_part(part)

library_searched("$PWD") if {
	own_libraries
	input.proposal.cwd.place == "workspace"
}

# An empty list at the end is what $LD_LIBRARY_PATH was, and means the working directory.
library_part("") if input.proposal.form == "argv"

# searched is true for a part of a list that the text shows: the value itself is judged when a
# program starts.
searched(part, own) if part == own

searched(part, _) if workspace_directory(part)

searched(part, _) if {
	startswith(part, "$PWD/")
	workspace_directory(substring(part, 5, -1))
}

# workspace_directory is true for a directory below the workspace. The working directory itself is
# not one, and a relative path is one only where that is in the workspace.
workspace_directory(part) if {
	lib.code_path(part)
	startswith(part, "/workspace/")
}

workspace_directory(part) if {
	lib.code_path(part)
	not startswith(part, "/")
	not regex.match(`^(\./*)*\.?$`, part)
	input.proposal.cwd.place == "workspace"
}

# A switch or a number names no program, and no file of a tool's.
allowed_assign(a) if {
	a.static
	regex.match(`^(true|false|yes|no|on|off|-?\d{1,12})$`, a.value)
	lib.only_controls(a.name)
	not regex.match(`^(PYTHON|NODE_|CARGO_NET_).*$`, a.name)
	not regex.match(named_by_end, a.name)
}

# An address of this machine that a bundler puts into its output.
allowed_assign(a) if {
	a.static
	input.command.starts == "any"
	regex.match(`^(VITE|NEXT_PUBLIC|NUXT|REACT_APP)_\w*(URL|HOST|API|ENDPOINT)$`, a.name)
	regex.match(lib.local_service_url, a.value)
	not lib.elsewhere(a.value)
}

# Settings of test runners and bundlers that are words and not the name of a program.
allowed_assign(a) if {
	a.static
	input.command.starts == "any"
	regex.match(`^(VITE|VITEST|NX|TURBO|JEST|PLAYWRIGHT|RSPEC|TOX)_`, a.name)
	not regex.match(named_by_end, a.name)
	not guarded_directory(a)
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
#   severity: medium
#   category: environment
#   match: [
#     "ZIP='r -T -TT prog' zip a b", "PYTHONPATH=dir yq . a.yaml", "FOO=bar zgrep x a.gz", "CLASSPATH=lib javac A.java",
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
# title: Tools are not looked for in other directories of the repository
# description: >-
#   A command that runs the repository's code may find programs in any directory of the workspace. The name of another tool
#   must mean the installed one, except for the directories in which package managers install tools.
# custom:
#   rule: env.search
#   severity: medium
#   category: environment
#   match: ["export PATH=$PWD/evil:$PATH; ls", "PATH=$PWD/bin:$PATH sort a", "PATH=bin:$PATH git log"]
#   not_match: ["export PATH=$PWD/bin:$PATH; npm test", "PATH=$PWD/node_modules/.bin:$PATH sort a", "export PATH=$PWD/bin:$PATH; ./t && echo ok"]
deny contains lib.denial(
	"env.search",
	sprintf("%s would be looked for in %q first, which is not a directory of installed tools", [input.command.program, dir]),
	"set PATH only for the command that needs it, or start the program by its path, as in ./bin/x",
) if {
	input.command.starts != "any"
	input.command.place == "lookup"
	not input.command.program in lib.builtins
	not shell_reads
	some dir in input.command.searched
	not lib.env_ok("PATH", dir)
	not installed_tools(dir)
	not path_denied
}

# path_denied is true if env.steering denies the command already.
path_denied if {
	some a in input.command.assigns
	a.name == "PATH"
	not allowed_assign(a)
}

installed_tools(dir) if regex.match(`^(\$PWD/|/workspace/|\./)?([\w-][\w.-]*/)*(node_modules/\.bin|\.?venv/bin|env/bin|vendor/bin)$`, dir)

# METADATA
# title: Only runners and the repository's own programs get LD_LIBRARY_PATH
# description: Every program that starts with it may load code of the repository, and an installed program was allowed for what it does itself.
# custom:
#   rule: env.library
#   severity: medium
#   category: loader
#   match: [
#     "export LD_LIBRARY_PATH=build/lib; ls", "env LD_LIBRARY_PATH=build/lib go vet ./...", "export LD_LIBRARY_PATH=lib; pytest",
#     "export LD_LIBRARY_PATH=$PWD/lib; timeout 5 ./t"
#   ]
#   not_match: [
#     "LD_LIBRARY_PATH=build/lib pytest", "export LD_LIBRARY_PATH=build/lib; ./t && echo ok", "env LD_LIBRARY_PATH=build/lib ./t",
#     "LD_LIBRARY_PATH=$PWD/build/lib ./t; ls"
#   ]
deny contains lib.denial(
	"env.library",
	sprintf("%s would load libraries from the directories of LD_LIBRARY_PATH", [input.command.program]),
	lib.library_fix,
) if {
	input.command.libraries
	input.command.place in {"lookup", "system"}
	not own_libraries
	not runner_with_libraries
	not input.command.program in lib.builtins
	not shell_reads
	not library_denied
}

# runner_with_libraries is true for a runner whose own variable env.steering judges.
runner_with_libraries if {
	library_runner
	some a in input.command.assigns
	a.name == "LD_LIBRARY_PATH"
}

# shell_reads is true for the commands of a text that its shell runs itself, without a program.
shell_reads if {
	input.proposal.form != "argv"
	input.command.place == "lookup"
	input.command.program in {"echo", "printf", "test", "[", "[[", "true", "false", "pwd", "type", "hash"}
	count(input.command.via) == 0
}

# library_denied is true if env.steering denies the command already.
library_denied if {
	some a in input.command.assigns
	a.name == "LD_LIBRARY_PATH"
	not allowed_assign(a)
}

# METADATA
# title: Tools that start other programs keep the sandbox's home directory
# description: Files under another HOME configure npm, python and go, and an archive or an earlier command can put them there.
# custom:
#   rule: env.home
#   severity: low
#   category: environment
#   match: [
#     "HOME=/tmp npm test", "export HOME=/tmp; python3 -c 'print(1)'", "env HOME=/tmp go test ./...", "HOME=/tmp gdb --version",
#     "HOME=/tmp timeout 9 npm test", "HOME=/tmp sh -c 'npm test'", "HOME=/tmp bash x.sh", "HOME=/tmp command npm test", "f() { npm test; }; HOME=/tmp f",
#     "for i in 1 2; do npm test; export HOME=/tmp; done", "trap 'npm test' EXIT; HOME=/tmp"
#   ]
#   not_match: [
#     "env -i HOME=\"$HOME\" PATH=\"$PATH\" make test",
#     "HOME=/tmp git status", "HOME=/tmp timeout 9 git status; npm test", "npm test; export HOME=/tmp", "HOME=/tmp sh -c 'git status' && npm test",
#     "env -i HOME=/tmp PATH=/usr/bin:/bin go version", "npm test"
#   ]
deny contains lib.denial(
	"env.home",
	sprintf("%s may read settings that name programs from files in HOME", [input.command.program]),
	lib.env_fix("HOME"),
) if {
	input.command.home_set
	reads_home
	input.command.place in {"lookup", "system", "workspace", "tmp"}
	not launches
	not input.command.program in lib.builtins
}

# launches is true for the commands that only run those of their words, which are judged themselves.
launches if {
	input.command.program in lib.wrappers
	not shell_script
	input.command.program != "perf"
}

shell_script if {
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	count(input.command.operands) > 0
}

reads_home if input.command.starts == "any"

# These read files in HOME that have commands, code or more options.
reads_home if {
	input.command.program in {
		"gdb", "sqlite3", "yq", "lcov", "helm", "terraform", "jupyter", "curl", "wget", "psql", "black", "codespell", "isort", "yapf", "autopep8",
		"pyflakes", "pycodestyle", "pydocstyle", "yamllint",
	}
}
