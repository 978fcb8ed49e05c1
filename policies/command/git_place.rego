# git reads the configuration of the repository in which it runs, and configuration can run
# programs and contain credentials. So git may work in the workspace's repository only.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: git works in the workspace's repository only
# custom:
#   rule: git.place
#   match: [
#     "git -C / log", "git -C ../other log", "git config --file=/opt/x --list", "git config --get-all http.https://github.com/.extraheader",
#     "git help -w log", "git mv a .github/workflows/a.yml", "git rm .github/workflows/a.yml", "git diff --no-index /etc/passwd x",
#     "git config --list --show-origin"
#   ]
#   not_match: ["git -C pkg log", "git mv a b", "git config --get user.name", "git diff --no-index a /tmp/b", "git -C \"$PWD\" log", "git help log"]
deny contains lib.denial("git.place", sprintf("git must not work in %q", [o.value]), "work in the workspace's repository") if {
	input.command.program == "git"
	some o in input.command.options
	o.name == "-C"
	o.place in {"outside", "home", "secret", "git", "control", "url"}
}

deny contains lib.denial("git.place", sprintf("git must not read %q", [o.value]), "read files in the workspace or /tmp") if {
	input.command.program == "git"
	some o in input.command.options
	o.value != ""
	startswith(o.name, "--")
	o.place in {"outside", "home", "secret"}
	regex.match(`^(/|~|\.\./)`, o.value)
}

deny contains lib.denial("git.place", sprintf("git must not change or read %q", [w.value]), "name files in the workspace") if {
	input.command.program == "git"
	some w in input.command.operands
	w.place in {"secret", "home", "outside", "git"}
	regex.match(`^(/|~|\.\./|\.git(/|$))`, w.value)
	not input.command.sub in {"log", "grep", "config", "check-ignore", "check-attr", "cat-file", "rev-parse"}
}

deny contains lib.denial("git.place", sprintf("git must not change the control file %q", [w.value]), "leave the file unchanged") if {
	input.command.program == "git"
	input.command.sub in {"mv", "rm", "restore", "checkout", "clean", "merge-file"}
	some w in input.command.operands
	w.place == "control"
	w.value != "conftest.py"
}

deny contains lib.denial("git.place", "git's configuration may contain credentials", "read a single key: `git config --get user.name`") if {
	input.command.program == "git"
	input.command.sub == "config"
	some word in input.command.argv
	regex.match(git_config_secret, word)
}

git_config_secret := concat("", [
	`(?i)extraheader|credential|token|password|^--show-origin$|insteadof|sslkey|proxy|^http\.`,
	`|^includeif|^include\.`,
])

deny contains lib.denial("git.place", "git help must not start a browser or a viewer", "print it: `git log -h`") if {
	input.command.program == "git"
	input.command.sub == "help"
	some word in input.command.argv
	word in {"-w", "--web", "-i", "--info", "-m", "--man"}
}
