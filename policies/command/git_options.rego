# git's options and configuration can name programs: pagers, filters, helpers, hooks. The kernel
# refuses to start them (exec.git, exec.child). A few options do more.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: git options that write other files, or that open an editor, are denied
# custom:
#   rule: git.option
#   severity: medium
#   category: files
#   match: [
#     "git init --template=/tmp/x .", "git init --separate-git-dir=/tmp/x .", "git --work-tree=.git/hooks checkout .", "git merge --edit main",
#     "git cherry-pick -e abc123", "git --git-dir=/tmp/x log", "git -c core.worktree=.git/hooks checkout .", "git -c include.path=../x.cfg log",
#     "git -c format.outputDirectory=.git/hooks format-patch -1"
#   ]
#   not_match: [
#     "git diff -O order.txt --stat", "git grep -c import", "git -c core.pager=id log", "git --exec-path=. status", "git diff --ext-diff",
#     "git grep -Oid x", "git log -c -1", "git switch -c fix", "git branch -c a b"
#   ]
deny contains lib.denial(
	"git.option",
	sprintf("git's %s writes git's own files, or opens an editor", [e.name]),
	"remove the option",
) if {
	input.command.program == "git"
	some e in input.command.effects
	e.kind == "run"
	regex.match(`^(-e|--(ed|git-d|out|sep|tem|work-t).*)$`, e.name) # abbreviations, too
}

# A file of configuration may have these settings, too.
deny contains lib.denial("git.option", sprintf("git's %s %s makes git write elsewhere", [o.name, o.value]), "remove the option") if {
	input.command.program == "git"
	some o in input.command.options
	o.name in {"-c", "--config-env"}
	regex.match(`(?i)^(core\.worktree|init\.templatedir|include|format\.outputdirectory)`, o.value)
}
