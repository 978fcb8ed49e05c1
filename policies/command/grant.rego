# What a command may start beside the programs of the root file system. Without a
# grant neither a program of the pull request nor one that was built or copied begins,
# whatever the command's own programs are led to: a grep stays a grep.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: What builds and tests the repository may start what it holds and what it builds
# custom:
#   rule: grant.built
#   grants: ["go test ./...", "make", "npm ci", "pytest -q", "python3 -c 'print(1)'", "cargo test", "timeout 60 go test ./...", "go list ./... | xargs go vet", "ctest", "terraform validate", "./gradlew test", "/tmp/x/run", "bash scripts/x.sh", "cat a | ./filter", "grep x y; ./run"]
#   not_grants: ["grep -r x .", "git diff HEAD~1", "find . -name '*.go' -exec wc -l {} +", "gcc -o x x.c", "gofmt -l .", "ls | xargs cat", "bash -c 'ls'", "awk '{print}' x", "cp a b", "tar xf a.tar", "sqlite3 a.db 'select 1'"]
exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program in lib.runners
	not input.command.program in lib.plain
}

exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program == "terraform" # its providers lie in the workspace
}

exec contains {"rule": "grant.built", "kind": "built"} if input.command.place in {"workspace", "tmp"}

# A script of the workspace is as much its code as a program is.
exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	count(input.command.operands) > 0
}
