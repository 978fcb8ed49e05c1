package fumehood.command

import data.fumehood.lib

git_reads := {
	"status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list", "describe", "shortlog", "cat-file", "diff-tree", "diff-index", "diff-files", "merge-base", "name-rev", "show-ref", "for-each-ref", "show-branch", "whatchanged", "count-objects", "check-ignore", "check-attr", "cherry", "range-diff", "version", "help", "var", "fsck", "verify-commit", "verify-tag", "reflog", "stripspace", "patch-id", "hash-object", "archive", "apply", "add", "restore", "reset", "stash", "checkout", "switch", "branch", "tag", "remote", "config", "init", "commit", "merge-tree", "merge-file", "worktree", "notes", "bisect", "clean", "rm", "mv", "format-patch", "sparse-checkout", "ls-remote", "submodule",
}

# METADATA
# title: git's verbs that read, and the few that change only the sandbox's copy
# custom:
#   rule: git.read
#   match: ["git diff HEAD~1 --stat", "git log --oneline -n 5", "git -C pkg status", "git branch --list"]
#   not_match: ["git push", "git clone x"]
allow contains {"rule": "git.read"} if {
	input.command.program == "git"
	input.command.place in found
	input.command.sub in git_reads
}

allow contains {"rule": "git.read"} if {
	input.command.program == "git"
	input.command.sub == ""
	some o in input.command.options
	o.name in {"--version", "-v", "--help", "-h"}
}

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
	"-c": "sets configuration that can run programs", "--config-env": "sets configuration that can run programs",
	"--exec-path": "loads git's programs from elsewhere", "--git-dir": "reads another repository's configuration", "--namespace": "is not needed to read",
	"--super-prefix": "is not needed to read", "--ext-diff": "runs an external diff program", "--textconv": "runs a filter program",
	"--open-files-in-pager": "runs a program on the files found", "--upload-pack": "runs a program", "--receive-pack": "runs a program",
	"--exec": "runs a program", "--output": "writes a file: redirect instead", "--remote": "reaches a remote", "--work-tree": "is not needed to read", "--attr-source": "is not needed to read",
	"--extcmd": "runs a program", "--template": "installs hooks", "--hook": "runs hooks", "--gpg-sign": "runs a program", "--show-signature": "runs gpg", "--edit": "runs an editor", "--interactive": "needs a terminal", "--patch-mode": "needs a terminal", "--separate-git-dir": "writes elsewhere", "--ext-grep": "runs a program", "--recurse-submodules": "reaches remotes",
}

git_harmless(o) if {
	o.name == "-c"
	regex.match(`^(color\.[a-z]+|core\.quotepath|core\.abbrev|user\.(name|email)|advice\.[a-zA-Z]+|diff\.(noprefix|renames|context|algorithm|mnemonicprefix)|log\.[a-z]+|init\.defaultbranch|init\.defaultBranch|core\.quotePath|diff\.renameLimit|safe\.directory|commit\.gpgsign|core\.autocrlf)=[A-Za-z0-9_.@ /*-]*$`, o.value)
	not startswith(o.value, "log.showsignature")
	not startswith(o.value, "log.showSignature")
	o.static
}

git_harmless(o) if {
	o.name == "--open-files-in-pager"
	input.command.sub in {"diff", "log", "show"}
}

git_harmless(o) if {
	o.name == "--output"
	o.place in {"workspace", "tmp"}
	o.static
}

deny contains lib.denial("git.option", sprintf("git would write %q", [o.value]), "write to the workspace or /tmp") if {
	input.command.program == "git"
	input.command.sub in {"archive", "format-patch"}
	some o in input.command.options
	o.name == "-o"
	not input.command.operands[0].place in {"workspace", "tmp"}
}

git_harmless(o) if {
	o.name == "--recurse-submodules"
	input.command.sub in {"grep", "ls-files"}
}

# METADATA
# title: git's sub-verbs that write configuration, reach remotes or run programs
# custom:
#   rule: git.verb
#   match: ["git push", "git config core.pager id", "git bisect run ./x", "git submodule foreach id", "git remote add x y", "git rebase -x id HEAD~1", "git difftool", "git clone ext::x"]
#   not_match: ["git config --get user.name", "git remote -v", "git stash list", "git worktree list"]
deny contains lib.denial("git.verb", sprintf("git %s reaches a remote, runs programs or writes configuration", [input.command.sub]), "read with git log, diff, show, status, grep, ls-files, blame, cat-file or rev-parse") if {
	input.command.program == "git"
	git_bad_verb
}

git_bad_verb if {
	input.command.sub != ""
	not input.command.sub in git_reads
	not git_remote
}

git_bad_verb if {
	input.command.sub == "config"
	not git_config_reads
}

git_config_reads if {
	some word in input.command.argv
	word in {"--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list"}
	not edits
}

git_config_reads if {
	input.command.operands[0].value in {"user.name", "user.email"}
	count(input.command.operands) < 3
	not edits
}

edits if {
	some word in input.command.argv
	word in {"--add", "--edit", "-e", "--replace-all", "--unset", "set", "edit", "--file", "-f", "--global", "--system"}
}

git_bad_verb if {
	input.command.sub in {"remote", "submodule", "bisect", "worktree", "sparse-checkout", "notes"}
	count(input.command.operands) > 0
	not input.command.operands[0].value in {"show", "get-url", "status", "summary", "list", "log", "start", "good", "bad", "reset", "skip", "view"}
}

git_bad_verb if {
	input.command.sub == "ls-remote"
	not git_remote
}

git_bad_verb if {
	some w in input.command.operands
	regex.match(`^(ext|fd)::|^-`, w.value)
}

git_bad_verb if {
	input.command.sub in {"add", "restore", "checkout", "reset", "commit", "apply"}
	some o in input.command.options
	o.name in {"-i", "-p", "-e", "--edit", "--interactive", "--patch", "--unsafe-paths", "--directory"}
	input.command.sub != "reset"
}

# METADATA
# title: git works in the workspace's repository, on files of the workspace
# custom:
#   rule: git.place
#   match: ["git -C / log", "git -C ../other log", "git config --file=/opt/x --list", "git config --get-all http.https://github.com/.extraheader", "git help -w log", "git mv a .github/workflows/a.yml", "git rm .github/workflows/a.yml", "git diff --no-index /etc/passwd x", "git config --list --show-origin"]
#   not_match: ["git -C pkg log", "git mv a b", "git config --get user.name", "git diff --no-index a /tmp/b", "git -C \"$PWD\" log", "git help log"]
deny contains lib.denial("git.place", sprintf("git would work in %q", [o.value]), "work in the workspace's repository") if {
	input.command.program == "git"
	some o in input.command.options
	o.name == "-C"
	o.place in {"outside", "home", "secret", "git", "control", "url"}
}

deny contains lib.denial("git.place", sprintf("git would read %q", [o.value]), "read files of the workspace or of /tmp") if {
	input.command.program == "git"
	some o in input.command.options
	o.value != ""
	startswith(o.name, "--")
	o.place in {"outside", "home", "secret"}
	regex.match(`^(/|~|\.\./)`, o.value)
}

deny contains lib.denial("git.place", sprintf("git would change or read %q", [w.value]), "name files of the workspace") if {
	input.command.program == "git"
	some w in input.command.operands
	w.place in {"secret", "home", "outside", "git"}
	regex.match(`^(/|~|\.\./|\.git(/|$))`, w.value)
	not input.command.sub in {"log", "grep", "config", "check-ignore", "check-attr", "cat-file", "rev-parse"}
}

deny contains lib.denial("git.place", sprintf("git would change the control file %q", [w.value]), "leave it as it is") if {
	input.command.program == "git"
	input.command.sub in {"mv", "rm", "restore", "checkout", "clean", "merge-file"}
	some w in input.command.operands
	w.place == "control"
	w.value != "conftest.py"
}

deny contains lib.denial("git.place", "git's configuration may hold credentials", "ask for one key, such as git config --get user.name") if {
	input.command.program == "git"
	input.command.sub == "config"
	some word in input.command.argv
	regex.match(`(?i)extraheader|credential|token|password|^--show-origin$|insteadof|sslkey|proxy|^http\.|^includeif|^include\.`, word)
}

deny contains lib.denial("git.place", "git help would start a browser or a viewer", "use git VERB -h") if {
	input.command.program == "git"
	input.command.sub == "help"
	some word in input.command.argv
	word in {"-w", "--web", "-i", "--info", "-m", "--man"}
}
