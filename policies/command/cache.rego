# Commands whose result depends on nothing but the files, the words and the tools, so that a
# proposal with cache may be given the result of an earlier run. They have one program without
# plugins, read the workspace alone and write nothing there. What may depend on the time, on
# chance or on a library beside the program is not here: most tools in Python, Ruby and Node.
package fumehood.command

# steady are those programs, and the options that change only what they check and print.
steady := {
	"gofmt": {"-l", "-d", "-s", "-e"},
	"go vet": {"-tags", "-json"},
	"go build": {"-tags"},
	"shellcheck": {"--check-sourced", "--color", "--include", "--exclude", "--format", "--norc", "--enable", "--shell", "--severity", "--external-sources"},
	"shfmt": {"--list", "--diff", "--simplify", "--language-dialect", "--indent", "--binary-next-line", "--case-indent", "--space-redirects", "--func-next-line"},
}

# METADATA
# title: The results of linters, format checks and Go's compiler may be kept
# custom:
#   rule: cache.steady
#   match: ["gofmt -l .", "gofmt -d -s cmd pkg", "go vet ./...", "go build ./...", "go vet -tags=e2e ./pkg", "shellcheck -S error a.sh", "shfmt -d -i 2 ."]
#   not_match: [
#     "gofmt -l -w .", "go test ./...", "go vet -c=3 ./...", "go build -o x ./...", "go -C sub vet ./...", "go vet ./... > out", "X=1 go vet ./...",
#     "timeout 5 go vet ./...", "gofmt -l $DIRS", "gofmt -l /tmp/x", "gofmt", "shellcheck -x -P .. a.sh", "date", "make lint", "./gofmt -l .",
#     "pytest", "ls | gofmt -l .", "gofmt -l . < a.go"
#   ]
cache contains {"rule": "cache.steady"} if {
	input.command.place in found
	options := steady[trim_space(sprintf("%s %s", [input.command.program, input.command.sub]))]
	every o in input.command.options { o.name in options }
	every w in input.command.operands { w.place == "workspace" }
	count(input.command.operands) > 0
	fixed_words
	every e in input.command.effects { formats(e) }
}

# formats holds for what gofmt and shfmt would write with -w, which is not in their options here.
formats(e) if {
	input.command.program in {"gofmt", "shfmt"}
	e.kind == "write"
	e.name == ""
}

# fixed_words holds if nothing but the words decides what the command is.
fixed_words if {
	input.command.static
	not input.command.open
	not input.command.function
	not input.command.loose
	every set in [
		input.command.unknown, input.command.via, input.command.inside, input.command.assigns, input.command.redirects, input.command.homes,
		input.command.urls,
	] {
		count(set) == 0
	}
	input.command.stdin_from == ""
}
