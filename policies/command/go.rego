package fumehood.command

import data.fumehood.lib

# METADATA
# title: go runs its own tools and the repository's code, and no other program
# custom:
#   rule: go.option
#   match: ["go test -exec ./x ./...", "go build -toolexec=./x ./...", "go vet -vettool=./x ./...", "go build --overlay x.json", "go build -modfile=/tmp/x.mod", "go -C /etc build", "go test -exec=sh ./..."]
#   not_match: ["go test -run TestExec ./...", "go build -o bin/x ./cmd/x", "go -C sub test ./..."]
deny contains lib.denial("go.option", sprintf("%s %s", [o.name, go_options[o.name]]), "leave the option out") if {
	input.command.program == "go"
	some o in input.command.options
	go_options[o.name]
}

go_options := {"-exec": "runs the program it names", "-toolexec": "runs the program it names", "-vettool": "runs the program it names", "-overlay": "builds other code than the repository holds", "-modfile": "builds other modules than the repository names", "-gccgoflags": "may load code", "-http": "opens a browser"}

deny contains lib.denial("go.option", "-C leaves the workspace", "name a folder of the workspace") if {
	input.command.program == "go"
	some o in input.command.options
	o.name == "-C"
	not o.place in {"workspace", "tmp"}
}

# METADATA
# title: Flags for the linker, the compiler and the assembler load no code
# custom:
#   rule: go.toolflags
#   match: ["go build -ldflags '-extld=./x'", "go build -ldflags=\"-X a=b -extldflags -fplugin=x\"", "go build -gcflags=-d=x"]
#   not_match: ["go build -ldflags '-s -w -X main.version=1'", "go build -gcflags='-m -l'", "go build -gcflags='all=-N -l'"]
deny contains lib.denial("go.toolflags", sprintf("%s may run another program or load code", [o.name]), "use -s -w -X name=value, and -m -N -l") if {
	input.command.program == "go"
	some o in input.command.options
	o.name in {"-ldflags", "-gcflags", "-asmflags"}
	not plain_tool_flags(o)
}

plain_tool_flags(o) if {
	o.static
	regex.match(`^(\S*=)?((-s|-w|-v|-m|-m=\d|-N|-l|-S|-e|-B \S+|-d=(ssa/check_bce/debug|checkptr|ssa/\S+)=?\d*|-X[ =]?[\w./-]+=[^ '"]*|-X[ =]?'[\w./-]+=[^']*'|-X[ =]?"[\w./-]+=[^"]*"|-linkmode[ =]internal|-extldflags "?-static"?|-lang=\S+)\s*)*$`, o.value)
}

# METADATA
# title: go's verbs that fetch, install or change the user's settings
# custom:
#   rule: go.verb
#   match: ["go install ./...", "go get x@latest", "go env -w GOFLAGS=-mod=mod", "go run example.com/x@latest", "go tool pprof -http :1 x", "go telemetry on", "go run /etc/x.go"]
#   not_match: ["go env", "go run ./cmd/x", "go mod tidy", "go generate ./...", "go tool cover -func=c.out"]
deny contains lib.denial("go.verb", sprintf("go %s %s", [input.command.sub, why]), "use go build, test, vet, run, list, doc, fmt, mod, env or version") if {
	input.command.program == "go"
	why := go_verb
}

go_verb := "is not one of those that build and test the repository" if {
	not input.command.sub in {"build", "test", "vet", "run", "list", "doc", "fmt", "mod", "env", "version", "help", "tool", "generate", "work", "fix", "clean", ""}
} else := "changes the user's settings" if {
	input.command.sub == "env"
	some o in input.command.options
	o.name in {"-w", "-u"}
} else := "needs the network" if {
	some w in input.command.operands
	contains(w.value, "@")
	input.command.sub in {"run", "build", "list", "mod", "tool"}
	not fetches
} else := "reaches code outside the workspace" if {
	input.command.sub in {"run", "build", "test", "vet"}
	w := input.command.operands[0]
	w.place in {"outside", "git", "secret", "home"}
} else := "runs tools that start servers or programs" if {
	input.command.sub == "tool"
	not input.command.operands[0].value in {"cover", "nm", "objdump", "vet", "fix", "buildid", "test2json", "pprof", "addr2line", "covdata"}
	count(input.command.operands) > 0
} else := "opens a server" if {
	input.command.sub == "tool"
	some word in input.command.argv
	startswith(word, "-http")
}

# fetches holds for what only reads or fetches modules, where hosts were granted.
fetches if {
	input.command.sub in {"list", "mod"}
	networked
}

# METADATA
# title: make reads the repository's makefile and no other
# custom:
#   rule: make.option
#   match: ["make SHELL=./x", "make -f /tmp/Makefile", "make --eval='x:;id'", "make -C / x", "make CC=./evil", "make .SHELLFLAGS=x", "make --ev=x", "make -f - x", "make MAKEFLAGS=x", "make -f <(echo x)"]
#   not_match: ["make -j4 test", "make VERBOSE=1 build", "make -C sub test", "make -f build/Makefile"]
deny contains lib.denial("make.option", sprintf("make's %s brings in other recipes", [o.name]), "use the repository's makefile") if {
	input.command.program in {"make", "gmake"}
	some o in input.command.options
	make_option(o)
}

make_option(o) if o.name == "--eval"

make_option(o) if {
	o.name in {"--makefile", "--directory", "--include-dir"}
	not makefile_place(o)
}

makefile_place(o) if {
	o.static
	o.place == "workspace"
	o.value != "-"
}

deny contains lib.denial("make.option", sprintf("the variable %q may name a program", [w.value]), "use the makefile's own programs; plain values for plain variables are fine") if {
	input.command.program in {"make", "gmake"}
	some w in input.command.operands
	contains(w.value, "=")
	not plain_variable(w)
}

plain_variable(w) if {
	w.static
	regex.match(`^[A-Za-z_][A-Za-z0-9_-]*[:+?]?=[A-Za-z0-9_.,/:=+ -]*$`, w.value)
}

deny contains lib.denial("make.option", sprintf("the variable %q names a program or flags", [w.value]), "use the makefile's own programs") if {
	input.command.program in {"make", "gmake"}
	some w in input.command.operands
	regex.match(`^(SHELL|\.?SHELLFLAGS|MAKE|MAKEFLAGS|MFLAGS|GNUMAKEFLAGS|MAKEFILES|CC|CXX|CPP|LD|AR|AS|GO|GOFLAGS|PYTHON|PIP|NODE|NPM|PAGER|EDITOR|LD_\w+|PATH|CARGO|RUSTC\w*|.*_CMD|.*COMMAND|DOCKER)[:+?]?=`, w.value)
	not regex.match(`^(CC|CXX)=(gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(-\d+)?$|^GOFLAGS=-(race|v|mod=\w+)$|^(GO=go|PYTHON=python3?|NODE=node|NPM=npm)$`, w.value)
}
