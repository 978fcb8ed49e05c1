# apt-get may fetch lists and packages into directories under /tmp when hosts were granted.
# It installs nothing and accepts no setting that runs a program.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial("network.option", "apt-get may only fetch lists and packages", "use apt-get update or download, with its directories under /tmp") if {
	client
	input.command.program == "apt-get"
	some i, word in input.command.argv
	not regex.match(`^(update|download|indextargets|-q+|-y|--print-uris|-o|[a-z0-9][a-z0-9.+-]*)$`, word)
	not apt_setting(i)
}

deny contains lib.denial("network.option", "apt-get may only fetch lists and packages", "use apt-get update or download, with its directories under /tmp") if {
	client
	input.command.program == "apt-get"
	verbs := [word | some i, word in input.command.argv; not startswith(word, "-"); not apt_setting(i)]
	not verbs[0] in {"update", "download", "indextargets"}
}

apt_setting(i) if {
	i > 0
	input.command.argv[i - 1] == "-o"
	regex.match(apt_own_setting, input.command.argv[i])
}

apt_own_setting := concat("", [
	`^(Dir::(State|Cache|Etc|Log)(::\w+)*=(/tmp/|/workspace/|[A-Za-z0-9_-])[^ ]*|Debug::NoLocking=\w+`,
	`|APT::Sandbox::User=\w*|Acquire::[\w:-]+=\w*)$`,
])
