# git may read the repository's history and state, and change the sandbox's copy. Many of
# its verbs can reach a remote, write configuration or run programs; those are denied.
package fumehood.command

import data.fumehood.lib

git_reads := {
	"status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list", "describe", "shortlog", "cat-file",
	"diff-tree", "diff-index", "diff-files", "merge-base", "name-rev", "show-ref", "for-each-ref", "show-branch", "whatchanged", "count-objects",
	"check-ignore", "check-attr", "cherry", "range-diff", "version", "help", "var", "fsck", "verify-commit", "verify-tag", "reflog", "stripspace",
	"patch-id", "hash-object", "archive", "apply", "add", "restore", "reset", "stash", "checkout", "switch", "branch", "tag", "remote", "config", "init",
	"commit", "merge-tree", "merge-file", "worktree", "revert", "cherry-pick", "merge", "notes", "bisect", "clean", "rm", "mv", "format-patch",
	"sparse-checkout", "ls-remote", "submodule", "symbolic-ref",
}

# METADATA
# title: git verbs that read, and a few that change only the sandbox's copy
# custom:
#   rule: git.read
#   match: [
#     "git diff HEAD~1 --stat", "git log --oneline -n 5", "git -C pkg status", "git branch --list", "git revert --no-commit HEAD",
#     "git cherry-pick abc123"
#   ]
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
#   severity: medium
#   category: code
#   match: [
#     "git push", "git config core.pager id", "git bisect run ./x", "git submodule foreach id", "git remote add x y", "git rebase -x id HEAD~1",
#     "git difftool", "git clone ext::x", "git worktree add /etc/x HEAD", "git worktree add ../x", "git worktree repair",
#     "git worktree add \"$X\" HEAD", "git config -lf x", "git config --fil=x --list", "git config --file x user.name y",
#     "git config --global alias.x '!id'", "git remote add x ext::sh", "git remote add origin https://example.com/x.git",
#     "git -C src remote add x https://example.com/x",
#     "git -C /tmp/x remote add x ext::sh",
#     "git symbolic-ref HEAD refs/heads/x", "git symbolic-ref -d HEAD"
#   ]
#   not_match: [
#     "git config --get user.name", "git remote -v", "git stash list", "git worktree list", "git worktree add /tmp/base HEAD~1",
#     "git worktree add -b fix wt main", "git worktree remove --force /tmp/base", "git stash pop", "git switch -c fix", "git checkout -b fix",
#     "git apply -p1 --check fix.diff", "git clean -n -e x", "git config --global user.name 'A B'", "git config user.email a@example.com",
#     "git -C /tmp/x config --local pull.rebase true",
#     "git -C /tmp/x remote add origin https://example.com/x.git",
#     "git -C /tmp/x symbolic-ref --short HEAD"
#   ]
deny contains lib.denial(
	"git.verb",
	sprintf("git %s %s", [input.command.sub, git_why]),
	git_instead,
) if {
	input.command.program == "git"
	git_bad_verb
}

git_instead := "put it under /tmp: `git worktree add /tmp/base HEAD~1`" if {
	input.command.sub == "worktree"
	input.command.operands[0].value == "add"
} else := "read one key: `git config --get user.name`" if {
	input.command.sub == "config"
} else := "use a verb that reads, such as `git log`, `git diff`, `git show`, `git status`, `git ls-files` or `git cat-file -p HEAD`"

# git_why says what the verb does. Verbs of which only some uses are denied say which uses
# are allowed.
git_why := "may only read the configuration, which can name programs" if {
	input.command.sub == "config"
} else := "may only list the remotes and show one" if {
	input.command.sub == "remote"
} else := "may only show submodules: others reach a remote or run programs" if {
	input.command.sub == "submodule"
} else := "adds and removes directories of the workspace and below /tmp only" if {
	input.command.sub == "worktree"
	input.command.operands[0].value in {"add", "remove"}
} else := "may only add, list and remove worktrees" if {
	input.command.sub == "worktree"
} else := "with these options opens an editor or a prompt, or leaves the workspace" if {
	input.command.sub in {"add", "restore", "checkout", "reset", "commit", "apply"}
} else := "reaches a remote" if {
	input.command.sub in {"push", "clone", "fetch", "pull", "ls-remote", "send-email", "request-pull"}
} else := "runs programs that the text does not show, or is not a verb that the policy allows"

git_bad_verb if {
	input.command.sub != ""
	not input.command.sub in git_reads
	not git_remote
	not git_copy
}

git_bad_verb if {
	input.command.sub == "config"
	not git_config_reads
	not git_config_sets
	not input.command.loose
}

git_bad_verb if {
	input.command.sub in {"remote", "submodule", "bisect", "worktree", "sparse-checkout", "notes"}
	input.command.operands[0].static
	not input.command.operands[0].value in {"show", "get-url", "status", "summary", "list", "log", "start", "good", "bad", "reset", "skip", "view"}
	not git_worktree
	not git_remote_below_tmp
}

git_bad_verb if {
	input.command.sub == "symbolic-ref"
	count(input.command.operands) != 1
}

git_bad_verb if {
	input.command.sub == "symbolic-ref"
	some o in input.command.options
	not o.name in {"-C", "--short", "-q", "--quiet"}
}

# Settings that name no program, file or host.
git_config_sets if {
	count(input.command.operands) == 2
	every w in input.command.operands { w.static }
	lower(input.command.operands[0].value) in git_plain_settings
	regex.match(`^[\w .,@+-]*$`, input.command.operands[1].value)
	every o in input.command.options { o.name in {"-C", "--global", "--local"} }
}

git_plain_settings := {
	"user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff", "push.default", "core.autocrlf", "core.filemode", "color.ui",
	"merge.conflictstyle", "advice.detachedhead",
}

# A repository that the run made below /tmp may name a remote. What reaches it is decided by itself.
git_remote_below_tmp if {
	input.command.sub == "remote"
	count(input.command.options) == 1
	input.command.options[0].name == "-C"
	input.command.options[0].static
	input.command.options[0].place == "tmp"
	every w in input.command.operands { w.static }
	git_remote_named
}

git_remote_named if {
	input.command.operands[0].value in {"add", "set-url"}
	count(input.command.operands) == 3
	regex.match(`^\w[\w.-]*$`, input.command.operands[1].value)
	regex.match(`^(https?|git)://[\w.-]+(:\d+)?/[\w./~+-]*$`, input.command.operands[2].value)
}

git_remote_named if {
	input.command.operands[0].value == "remove"
	count(input.command.operands) == 2
}

# A worktree is a second directory of the same repository.
git_worktree if {
	input.command.sub == "worktree"
	input.command.operands[0].value in {"list", "prune"}
}

git_worktree if {
	input.command.sub == "worktree"
	input.command.operands[0].value in {"add", "remove"}
	directory := input.command.operands[1]
	directory.static
	directory.place in {"workspace", "tmp"}
}

# METADATA
# title: git revert needs --no-edit or --no-commit
# custom:
#   rule: git.editor
#   severity: low
#   category: usage
#   match: ["git revert HEAD", "git revert -m 1 HEAD"]
#   not_match: [
#     "git revert --no-commit HEAD", "git revert -n HEAD~2..HEAD", "git revert --no-edit HEAD", "git revert --abort", "git cherry-pick abc123",
#     "git cherry-pick -x abc123", "git merge --no-commit --no-ff origin/main"
#   ]
deny contains lib.denial("git.editor", "git revert opens an editor for the message", "write no message: `git revert --no-edit HEAD`") if {
	input.command.program == "git"
	input.command.sub == "revert"
	not git_without_editor
}

git_without_editor if {
	some o in input.command.options
	o.name in {"--no-edit", "--no-commit", "--abort", "--quit", "--skip"}
}

git_bad_verb if {
	input.command.sub == "ls-remote"
	not git_remote
}

git_bad_verb if {
	input.command.sub in {"add", "restore", "checkout", "reset", "commit", "apply"}
	some o in input.command.options
	o.name in {"-i", "-e", "--edit", "--interactive", "--patch", "--unsafe-paths", "--directory"}
	input.command.sub != "reset"
}

git_config_reads if {
	some word in input.command.argv
	word in {"--get", "--list", "-l", "--get-all", "--get-regexp"}
	not edits
}

git_config_reads if {
	input.command.operands[0].value in {"get", "list"}
	not edits
}

git_config_reads if {
	input.command.operands[0].value in {"user.name", "user.email"}
	count(input.command.operands) < 3
	not edits
}

edits if {
	some o in input.command.options
	regex.match(`^(-[ef]|--(ad|ed|re[pmn]|un|fil|bl|gl|sy).*)$`, o.name) # abbreviations, too
}

edits if {
	some word in input.command.argv
	word in {"set", "edit", "unset", "rename-section", "remove-section"}
}
