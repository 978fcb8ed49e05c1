# git may read the repository's history and state, and change the sandbox's copy. Many of
# its verbs can reach a remote, write configuration or run programs; those are denied.
package fumehood.command

import data.fumehood.lib

git_reads := {
	"status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list", "describe", "shortlog", "cat-file", "diff-tree", "diff-index", "diff-files", "merge-base", "name-rev", "show-ref", "for-each-ref", "show-branch", "whatchanged", "count-objects", "check-ignore", "check-attr", "cherry", "range-diff", "version", "help", "var", "fsck", "verify-commit", "verify-tag", "reflog", "stripspace", "patch-id", "hash-object", "archive", "apply", "add", "restore", "reset", "stash", "checkout", "switch", "branch", "tag", "remote", "config", "init", "commit", "merge-tree", "merge-file", "worktree", "notes", "bisect", "clean", "rm", "mv", "format-patch", "sparse-checkout", "ls-remote", "submodule",
}

# METADATA
# title: git verbs that read, and a few that change only the sandbox's copy
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

# A verb that is known only at run time is decided when git starts.
allow contains {"rule": "git.read"} if {
	input.command.program == "git"
	input.command.place in found
	input.command.sub == ""
	input.command.loose
}

# METADATA
# title: git verbs that write configuration, reach remotes or run programs are denied
# custom:
#   rule: git.verb
#   match: ["git push", "git config core.pager id", "git bisect run ./x", "git submodule foreach id", "git remote add x y", "git rebase -x id HEAD~1", "git difftool", "git clone ext::x"]
#   not_match: ["git config --get user.name", "git remote -v", "git stash list", "git worktree list"]
deny contains lib.denial("git.verb", sprintf("git %s reaches a remote, runs programs or writes configuration", [input.command.sub]), "use git log, diff, show, status, grep, ls-files, blame, cat-file or rev-parse") if {
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
	not input.command.loose
}

git_bad_verb if {
	input.command.sub in {"remote", "submodule", "bisect", "worktree", "sparse-checkout", "notes"}
	input.command.operands[0].static
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
