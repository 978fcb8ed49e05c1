# What may run: tools that are known by name, shell builtins, and programs in the
# workspace. An allow here is not enough: every other file in this directory denies what
# a single tool could do beyond its purpose.

# METADATA
# scope: package
# description: What the repository's own programs start is judged in fumehood.exec, whatever a text may name.
# custom: {text_only: true}
package fumehood.command

import data.fumehood.lib

found := {"lookup", "system"}

# METADATA
# title: Programs that read, compute and print
# custom:
#   rule: text.read
#   match: ["cat README.md | wc -l", "ls -la pkg", "/usr/bin/head -n 5 go.mod"]
#   not_match: ["./cat x", "/tmp/ls"]
allow contains {"rule": "text.read"} if {
	input.command.place in found
	input.command.program in lib.readers
}

# METADATA
# title: Shell builtins
# custom:
#   rule: shell.builtin
#   match: ["cd pkg && pwd", "set -euo pipefail"]
allow contains {"rule": "shell.builtin"} if {
	input.command.place == "lookup"
	input.command.program in lib.builtins
}

# METADATA
# title: Assignments and redirections without a command
# custom:
#   rule: shell.assign
#   match: ["x=1"]
allow contains {"rule": "shell.assign"} if input.command.place == "none"

# METADATA
# title: Functions defined in the same text; each command in them is checked
# custom:
#   rule: shell.function
#   match: ["f() { go vet ./...; }; f"]
allow contains {"rule": "shell.function"} if input.command.function

# METADATA
# title: Wrappers; the command they run is checked separately
# custom:
#   rule: wrapper.use
#   match: ["timeout 60 go test ./...", "find . -name '*.go' | xargs wc -l"]
allow contains {"rule": "wrapper.use"} if {
	input.command.place in found
	input.command.program in lib.wrappers
}

# METADATA
# title: Build, test and check tools; they run the repository's code inside the sandbox
# custom:
#   rule: code.run
#   match: ["go test ./...", "pytest -q tests", "npm test", "cargo clippy", "make test", "python3 -c 'print(1)'"]
#   not_match: ["curl example.com"]
allow contains {"rule": "code.run"} if {
	input.command.place in found
	input.command.program in lib.runners
}

# METADATA
# title: Programs in the workspace; they are the repository's code and run inside the sandbox
# custom:
#   rule: code.workspace
#   match: ["./gradlew test", "./scripts/check.sh", "node_modules/.bin/eslint ."]
#   not_match: ["/opt/x/run", "../run.sh", ".git/hooks/pre-commit"]
allow contains {"rule": "code.workspace"} if input.command.place in {"workspace", "tmp"}

# METADATA
# title: Change files in the workspace or /tmp
# custom:
#   rule: files.change
#   match: ["mkdir -p out", "cp go.mod /tmp/go.mod"]
#   not_match: ["./cp a b"]
allow contains {"rule": "files.change"} if {
	input.command.place in found
	input.command.program in lib.changers
}

# METADATA
# title: Search and edit tools whose scripts are checked
# custom:
#   rule: text.judged
#   match: ["sed -n 1,5p x", "awk '{print $1}' x", "rg TODO", "tar tf x.tar"]
allow contains {"rule": "text.judged"} if {
	input.command.place in found
	input.command.program in lib.judged
	input.command.program != "git"
}
