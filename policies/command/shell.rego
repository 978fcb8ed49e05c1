# A shell may run commands that the text shows, and scripts in the workspace. It must stay
# in the workspace, must not read profiles, and may signal only its own jobs.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: cd stays in the workspace and /tmp
# custom:
#   rule: shell.cd
#   severity: low
#   category: files
#   match: ["cd / && ls", "cd .git/hooks", "cd ../.."]
#   not_match: ["cd pkg && go test", "cd /tmp", "cd -"]
deny contains lib.denial("shell.cd", sprintf("cd %q leaves the workspace%s", [w.value, cd_condition(w.value)]), cd_instead(w.value)) if {
	input.command.program in {"cd", "pushd"}
	some w in input.command.operands
	not w.place in {"workspace", "tmp", "dynamic", "control"}
}

# What follows a cd with ; runs if that failed, too.
cd_condition(value) := ", or does if a cd before it fails" if {
	follows_cd(value)
} else := ""

follows_cd(value) if {
	startswith(value, "..")
	input.command.index > 0
	count([name | some name in input.proposal.programs; name in {"cd", "pushd"}]) > 1
}

cd_instead(value) := "give each directory its own shell: `(cd packages/a && npm test); (cd packages/b && npm test)`" if {
	follows_cd(value)
} else := "name a directory in the workspace or under /tmp"

# METADATA
# title: Shells run only the command's text, or a script in the workspace or under /tmp
# custom:
#   rule: shell.script
#   severity: medium
#   category: code
#   match: [
#     "bash /etc/x.sh", "bash /tmp/../etc/x.sh", "bash /tmp", "bash < x.sh", "bash -s x < x.sh", "bash -O extglob < x.sh",
#     "bash prove -e id a.t", "sh chromium x", "bash ldd ./x"
#   ]
#   not_match: ["bash scripts/test.sh", "bash /tmp/r.sh", "bash -c 'go test ./...'", "sh ./x.sh", "bash x.sh < data.txt", "sh build", "sh test"]
deny contains lib.denial(
	"shell.script",
	sprintf("the script %q is neither in the workspace nor under /tmp", [input.command.operands[0].value]),
	"run a script in the workspace or under /tmp, or write its commands",
) if {
	input.command.program in {"bash", "sh", "dash"}
	not input.command.operands[0].value == ""
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	not script_place(input.command.operands[0])
}

# What is under /tmp was made by the run. It is run as the repository's own code is, with the same grant.
script_place(w) if w.place in {"workspace", "control"}

script_place(w) if {
	w.place == "tmp"
	not regex.match(`^/tmp/*$`, w.value)
}

# Without a slash, a shell looks for the script in PATH, too.
deny contains lib.denial("shell.script", sprintf("%q may be the tool, whose options are not judged here", [name]), "start the tool by its own name") if {
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	name := input.command.operands[0].value
	name in searched_names
}

# Repositories have scripts with two of these names, and the tools of these names are no scripts.
searched_names := ((lib.programs | browsers) - lib.builtins) - {"test", "install"}

deny contains lib.denial("shell.script", "which script the shell runs is known only when it runs", "name the script: `bash scripts/test.sh`") if {
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	input.command.operands[0].value == ""
}

deny contains lib.denial("shell.script", "a shell must not read its commands from standard input", "write the commands literally") if {
	input.command.program in {"bash", "sh", "dash"}
	input.command.stdin_from in {"herestring", "heredoc", "file"}
	not names_script
}

# names_script is true if the first word that is not a plain option is a literal script of the workspace:
# standard input is then its data. After another option it may be that option's value, as in bash -O extglob,
# or an argument of the commands in standard input, as in bash -s x.
names_script if {
	script := input.command.operands[0]
	script.static
	not script.glob
	script.place in {"workspace", "control"}
	regex.match(`^[A-Za-z0-9_./].*$`, script.value)
	some i
	input.command.argv[i] == script.value
	every word in array.slice(input.command.argv, 0, i) { regex.match(`^-[eux]+$`, word) }
}

# METADATA
# title: Login shells are denied, since they read profiles
# custom:
#   rule: shell.login
#   severity: low
#   category: environment
#   match: ["xargs bash -lc ls", "xargs bash -l -c 'go test'", "nohup bash --login -c ls"]
#   not_match: ["bash -c ls", "bash -euo pipefail -c ls", "bash -lc ls"]
deny contains lib.denial("shell.login", "a login shell reads profiles first", "start one that is not: `bash -c 'go test ./...'`") if {
	input.command.program in {"bash", "sh", "dash"}
	some i, word in input.command.argv
	regex.match(`^-[a-zA-Z]*l[a-zA-Z]*$|^--login$`, word)
	not after_script(i)
}

after_script(i) if {
	some j, word in input.command.argv
	j < i
	regex.match(`^[^-].*`, word)
}

# METADATA
# title: Only the command's own jobs may be signaled
# custom:
#   rule: shell.kill
#   severity: low
#   category: processes
#   match: ["kill -9 1", "kill -9 -1"]
#   not_match: ["kill $pid", "kill %1"]
deny contains lib.denial("shell.kill", "kill may name only jobs and processes that the command started", "use kill \"$pid\" or kill %1") if {
	input.command.program == "kill"
	some w in input.command.argv
	w in {"1", "-1", "0"}
}
