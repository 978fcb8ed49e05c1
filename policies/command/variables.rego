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
#     "PYTHONPATH=/tmp/x pytest", "RUSTFLAGS='-Clinker=./x' cargo build", "CFLAGS=-fplugin=./x.so make",
#     "NODE_OPTIONS='--max-old-space-size=1 --require=./x' node a", "SOME_TOOL_RC=x ls", "THING=/etc/x go test", "FC=./x go build",
#     "GOWORK=/tmp/x/go.work go build", "LEX=./x make", "LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", "export GIT_PAGER=x",
#     "NODE_OPTIONS=--require=./x.js npm test"
#   ]
#   not_match: [
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
