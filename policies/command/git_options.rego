# git's options and configuration can name programs: pagers, filters, helpers, hooks. Only
# those that cannot are allowed.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: git options that run programs or reach remotes are denied
# custom:
#   rule: git.option
#   match: ["git -c core.pager=id log", "git --exec-path=. status", "git diff --ext-diff", "git grep -Oid x", "git --git-dir=/tmp/x log"]
#   not_match: ["git diff -O order.txt --stat", "git grep -c import", "git log -c -1", "git switch -c fix", "git branch -c a b"]
deny contains lib.denial("git.option", sprintf("git's %s %s", [o.name, why]), "remove the option") if {
	input.command.program == "git"
	some o in input.command.options
	why := git_options[o.name]
	not git_harmless(o)
}

git_options := {"-c": "sets configuration that can run programs", "--edit": "runs an editor", "--interactive": "needs a terminal"}

deny contains lib.denial(
	"git.option",
	sprintf("git's %s runs a program, reaches a remote or reads another repository's configuration", [e.name]),
	"remove the option",
) if {
	input.command.program == "git"
	some e in input.command.effects
	e.kind == "run"
	not git_nested(e)
}

# grep and ls-files read submodules that exist; other verbs fetch them.
git_nested(e) if {
	e.name == "--recurse-submodules"
	input.command.sub in {"grep", "ls-files"}
}

git_harmless(o) if {
	o.name == "-c"
	regex.match(harmless_git_setting, o.value)
	not startswith(o.value, "log.showsignature")
	not startswith(o.value, "log.showSignature")
}

harmless_git_setting := concat("", [
	`^(color\.[a-z]+|core\.quotepath|core\.abbrev|user\.(name|email)|advice\.[a-zA-Z]+`,
	`|diff\.(noprefix|renames|context|algorithm|mnemonicprefix)|log\.[a-z]+|init\.defaultbranch`,
	`|init\.defaultBranch|core\.quotePath|diff\.renameLimit|safe\.directory|commit\.gpgsign`,
	`|core\.autocrlf)=[A-Za-z0-9_.@ /*-]*$`,
])

git_harmless(o) if {
	o.name == "-c"
	not o.static
	o.value == ""
}
