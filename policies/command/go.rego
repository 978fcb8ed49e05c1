# go may build, test, vet, run and describe the module in the current directory. Options
# that run another program or add other code are denied, and so are verbs that fetch,
# install or change the user's settings.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: go stays in the workspace
# custom:
#   rule: go.option
#   severity: medium
#   category: files
#   match: ["go -C /etc build"]
#   not_match: ["go -C sub test ./..."]
deny contains lib.denial("go.option", "-C leaves the workspace", "name a directory in the workspace") if {
	input.command.program == "go"
	some o in input.command.options
	o.name == "-C"
	not o.place in {"workspace", "tmp", "dynamic"}
}

# METADATA
# title: Linker, compiler and assembler flags that load code are denied
# custom:
#   rule: go.toolflags
#   severity: medium
#   category: code
#   match: ["go build -ldflags '-extld=./x'", "go build -ldflags=\"-X a=b -extldflags -fplugin=x\"", "go build -gcflags=-d=x"]
#   not_match: ["go build -ldflags '-s -w -X main.version=1'", "go build -gcflags='-m -l'", "go build -gcflags='all=-N -l'"]
deny contains lib.denial(
	"go.toolflags",
	sprintf("%s may run another program or load code", [o.name]),
	"use only -s -w -X name=value, and -m -N -l: `go build -ldflags='-s -w -X main.v=1' ./...`",
) if {
	input.command.program == "go"
	some o in input.command.options
	o.name in {"-ldflags", "-gcflags", "-asmflags"}
	o.static
	not plain_tool_flags(o)
}

plain_tool_flags(o) if {
	regex.match(plain_tool_flag, o.value)
}

plain_tool_flag := concat("", [
	`^(\S*=)?((-s|-w|-v|-m|-m=\d|-N|-l|-S|-e|-B \S+|-d=(ssa/check_bce/debug|checkptr|ssa/\S+)=?\d*`,
	`|-X[ =]?[\w./-]+=[^ '"]*|-X[ =]?'[\w./-]+=[^']*'|-X[ =]?"[\w./-]+=[^"]*"|-linkmode[ =]internal`,
	`|-extldflags "?-static"?|-lang=\S+)\s*)*$`,
])

# METADATA
# title: go verbs that fetch, install or change the user's settings are denied
# custom:
#   rule: go.verb
#   severity: medium
#   category: network
#   match: [
#     "go install ./...", "go get x@latest", "go env -w GOFLAGS=-mod=mod", "go run example.com/x@latest", "go tool pprof -http :1 x",
#     "go telemetry on", "go run /etc/x.go", "go build -o x ./a cmd/test2json", "go tool -C nm trace x"
#   ]
#   not_match: ["go env", "go run ./cmd/x", "go run . cmd", "GOBIN=/tmp/b go install ./cmd/x", "go mod tidy", "go generate ./...", "go tool cover -func=c.out"]
deny contains lib.denial("go.verb", sprintf("go %s %s", [input.command.sub, why]), go_instead) if {
	input.command.program == "go"
	why := go_verb
}

go_instead := "let go build print it: `go build -gcflags=-S ./...`" if {
	input.command.sub == "tool"
	input.command.operands[0].value in {"compile", "asm", "link"}
} else := "name a package of the repository or of a module that it requires, without a version: `go run ./cmd/x`" if {
	input.command.sub in {"run", "build", "list"}
}

default go_instead := "build, test or read the repository: `go build ./...`, `go test ./...`, `go vet ./...`, `go list ./...` or `go env`"

go_verb := "does not build or test the repository" if {
	not input.command.sub in {"build", "test", "vet", "run", "list", "doc", "fmt", "mod", "env", "version", "help", "tool", "generate", "work", "fix", "clean", ""}
	not installs_own
} else := "changes the user's settings" if {
	input.command.sub == "env"
	some o in input.command.options
	o.name in {"-w", "-u"}
} else := sprintf("%s fetches a module, and there is no network", [w.value]) if {
	some w in input.command.operands
	contains(w.value, "@")
	input.command.sub in {"run", "build", "list", "mod", "tool"}
	not fetches
} else := "builds a tool of Go, which may start any program" if {
	some w in built_packages
	regex.match(`^(cmd|std)(/|$)`, w.value)
} else := "reaches code outside the workspace" if {
	input.command.sub in {"run", "build", "test", "vet"}
	w := input.command.operands[0]
	w.place in {"outside", "git", "secret", "home"}
} else := "runs tools that start servers or programs" if {
	input.command.sub == "tool"
	input.command.operands[0].static
	not input.command.operands[0].value in {"cover", "nm", "objdump", "vet", "fix", "buildid", "test2json", "pprof", "addr2line", "covdata"}
} else := "opens a server" if {
	input.command.sub == "tool"
	some word in input.command.argv
	startswith(word, "-http")
}

# installs_own is true if packages of the workspace are installed below /tmp, which is a build.
installs_own if {
	input.command.sub == "install"
	count(input.command.operands) > 0
	every w in input.command.operands { regex.match(`^\.(/\w[\w-]*)*(/\.\.\.)?/?$`, w.value) }
	some a in input.command.assigns
	a.name == "GOBIN"
	a.static
	lib.env_ok(a.name, a.value)
}

# The words after the package of go run are its program's. Paths below Go's own directory are outside the workspace.
built_packages contains input.command.operands[0] if input.command.sub == "run"

built_packages contains w if {
	input.command.sub == "build"
	some w in input.command.operands
}

# fetches is true for verbs that only read or fetch modules, when hosts were granted.
fetches if {
	input.command.sub in {"list", "mod"}
	networked
}

# METADATA
# title: go builds only packages that the module names
# custom:
#   rule: go.elsewhere
#   severity: medium
#   category: network
#   match: ["go build -pkgdir /tmp/x ./...", "go work use /tmp/evil", "go mod edit -replace=golang.org/x/text=/tmp/evil"]
#   not_match: ["go build -o /tmp/x ./cmd/x", "go mod edit -json", "go test -coverprofile=/tmp/c.out ./..."]
deny contains lib.denial("go.elsewhere", sprintf("%s adds packages from outside the repository", [o.name]), "remove it") if {
	input.command.program == "go"
	some o in input.command.options
	brings(o)
}

brings(o) if o.name == "-pkgdir"

brings(o) if {
	o.name == "-replace"
	regex.match(`=(/|\.\./|~)`, o.value)
}

deny contains lib.denial("go.elsewhere", sprintf("%s adds packages from outside the repository", [w.value]), "remove it") if {
	input.command.program == "go"
	input.command.sub == "work"
	some w in input.command.operands
	regex.match(`^(/|~|\.\./)`, w.value)
}
