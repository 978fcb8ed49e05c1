# git's options and its configuration name programs: pagers, filters, helpers, hooks. Only
# those that can name none are let through.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: git runs no other program and reaches no remote
# custom:
#   rule: git.option
#   match: ["git -c core.pager=id log", "git --exec-path=. status", "git diff --ext-diff", "git grep -Oid x", "git diff --output=/etc/x", "git --git-dir=/tmp/x log"]
#   not_match: ["git diff -O order.txt --stat", "git grep -c import"]
deny contains lib.denial("git.option", sprintf("git's %s %s", [o.name, why]), "leave the option out") if {
	input.command.program == "git"
	some o in input.command.options
	why := git_options[o.name]
	not git_harmless(o)
	not git_counts(o)
}

# After the verb, -c counts in grep and creates in switch: it is no configuration.
git_counts(o) if {
	o.name == "-c"
	input.command.sub in {"grep", "switch", "commit", "ls-files", "blame"}
	some i, word in input.command.argv
	word == input.command.sub
	not "-c" in array.slice(input.command.argv, 0, i)
}

git_options := {
	"--paginate": "runs a pager",
	"-c": "sets configuration that can run programs",
	"--config-env": "sets configuration that can run programs",
	"--exec-path": "loads git's programs from elsewhere",
	"--git-dir": "reads another repository's configuration",
	"--namespace": "is not needed to read",
	"--super-prefix": "is not needed to read",
	"--ext-diff": "runs an external diff program",
	"--textconv": "runs a filter program",
	"--open-files-in-pager": "runs a program on the files found",
	"--upload-pack": "runs a program",
	"--receive-pack": "runs a program",
	"--exec": "runs a program",
	"--output": "writes a file: redirect instead",
	"--remote": "reaches a remote",
	"--work-tree": "is not needed to read",
	"--attr-source": "is not needed to read",
	"--extcmd": "runs a program",
	"--template": "installs hooks",
	"--hook": "runs hooks",
	"--gpg-sign": "runs a program",
	"--show-signature": "runs gpg",
	"--edit": "runs an editor",
	"--interactive": "needs a terminal",
	"--patch-mode": "needs a terminal",
	"--separate-git-dir": "writes elsewhere",
	"--ext-grep": "runs a program",
	"--recurse-submodules": "reaches remotes",
}

git_harmless(o) if {
	o.name == "-c"
	regex.match(`^(color\.[a-z]+|core\.quotepath|core\.abbrev|user\.(name|email)|advice\.[a-zA-Z]+|diff\.(noprefix|renames|context|algorithm|mnemonicprefix)|log\.[a-z]+|init\.defaultbranch|init\.defaultBranch|core\.quotePath|diff\.renameLimit|safe\.directory|commit\.gpgsign|core\.autocrlf)=[A-Za-z0-9_.@ /*-]*$`, o.value)
	not startswith(o.value, "log.showsignature")
	not startswith(o.value, "log.showSignature")
}

git_harmless(o) if {
	o.name == "-c"
	not o.static
	o.value == ""
}

git_harmless(o) if {
	o.name == "--open-files-in-pager"
	input.command.sub in {"diff", "log", "show"}
}

git_harmless(o) if {
	o.name == "--output"
	o.place in {"workspace", "tmp", "dynamic"}
}

git_harmless(o) if {
	o.name == "--recurse-submodules"
	input.command.sub in {"grep", "ls-files"}
}

deny contains lib.denial("git.option", sprintf("git would write %q", [o.value]), "write to the workspace or /tmp") if {
	input.command.program == "git"
	input.command.sub in {"archive", "format-patch"}
	some o in input.command.options
	o.name == "-o"
	not input.command.operands[0].place in {"workspace", "tmp", "dynamic"}
}
