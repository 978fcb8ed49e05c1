# Programs that a command may start besides those of the root file system. Without a
# grant, no program from the pull request and no program that was built or copied can
# start, even if a tool is tricked into starting one: a grep stays a grep.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Build and test tools may start programs that are in the repository or that they build
# custom:
#   rule: grant.built
#   grants: [
#     "go test ./...", "make", "npm ci", "pytest -q", "python3 -c 'print(1)'", "cargo test", "timeout 60 go test ./...",
#     "go list ./... | xargs go vet", "ctest", "terraform validate", "./gradlew test", "/tmp/x/run", "bash scripts/x.sh", "cat a | ./filter",
#     "grep x y; ./run",
#     "javac A.java", "javac -proc:none A.java", "javac -cp lib -d out src/A.java", "javadoc -taglet T -tagletpath lib A.java", "go tool test2json -t ./x.test"
#   ]
#   not_grants: [
#     "grep -r x .", "git diff HEAD~1", "find . -name '*.go' -exec wc -l {} +", "gcc -o x x.c", "gofmt -l .", "ls | xargs cat", "bash -c 'ls'",
#     "awk '{print}' x", "cp a b", "tar xf a.tar", "sqlite3 a.db 'select 1'",
#     "javac -version", "javadoc -d out A.java"
#   ]
exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program in lib.runners
	not input.command.program in lib.plain
}

exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program == "terraform" # its providers lie in the workspace
}

exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	lib.loads_classes(input.command.program, input.command.argv)
}

exec contains {"rule": "grant.built", "kind": "built"} if input.command.place in {"workspace", "tmp"}

# Scripts in the workspace are the repository's code, too.
exec contains {"rule": "grant.built", "kind": "built"} if {
	input.command.place in found
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	count(input.command.operands) > 0
}
