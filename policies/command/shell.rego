# A shell may run what the text shows, command by command, and scripts of the workspace. It
# stays in the workspace, reads nothing unseen first, and signals its own jobs.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Stay in the workspace
# custom:
#   rule: shell.cd
#   match: ["cd / && ls", "cd .git/hooks", "cd ../.."]
#   not_match: ["cd pkg && go test", "cd /tmp", "cd -"]
deny contains lib.denial("shell.cd", sprintf("cd %q leaves the workspace", [w.value]), "name a folder of the workspace, or one under /tmp") if {
	input.command.program in {"cd", "pushd"}
	some w in input.command.operands
	not w.place in {"workspace", "tmp", "dynamic", "control"}
}

# METADATA
# title: A shell runs text that was judged, or a script of the workspace
# custom:
#   rule: shell.script
#   match: ["bash /etc/x.sh", "bash /tmp/x.sh"]
#   not_match: ["bash scripts/test.sh", "bash -c 'go test ./...'", "sh ./x.sh"]
deny contains lib.denial("shell.script", sprintf("the script %q is no script of the workspace", [input.command.operands[0].value]), "run a script of the workspace, or write its commands") if {
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	not input.command.operands[0].place in {"workspace", "control"}
}

deny contains lib.denial("shell.script", "a shell reads its commands from standard input", "write the commands themselves") if {
	input.command.program in {"bash", "sh", "dash"}
	input.command.stdin_from in {"herestring", "heredoc", "file"}
}

# METADATA
# title: A login shell reads other files first
# custom:
#   rule: shell.login
#   match: ["bash -lc ls", "bash -l -c 'go test'", "bash --login -c ls"]
#   not_match: ["bash -c ls", "bash -euo pipefail -c ls"]
deny contains lib.denial("shell.login", "a login shell reads profiles first", "use bash -c") if {
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
# title: Signals stay among the command's own jobs
# custom:
#   rule: shell.kill
#   match: ["kill -9 1", "kill -9 -1"]
#   not_match: ["kill $pid", "kill %1"]
deny contains lib.denial("shell.kill", "kill may name only jobs and processes that the text started", "use kill \"$pid\" or kill %1") if {
	input.command.program == "kill"
	some w in input.command.argv
	w in {"1", "-1", "0"}
}
