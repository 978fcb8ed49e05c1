package fumehood.command

test_git_history if allowed("git log --oneline") == {"git.read"}

test_git_a_push if denied("git push") == {"git.verb"}

test_git_configuration if denied("git config core.pager id") == {"git.verb"}

test_git_its_version if allowed("git --version") == {"git.read"}

test_git_a_worktree if allowed("git worktree add /tmp/base HEAD~1") == {"git.read"}

test_git_a_worktree_elsewhere if denied("git worktree add /etc/x HEAD") == {"git.verb"}

test_git_a_revert if {
	allowed("git revert --no-commit HEAD") == {"git.read"}
	allowed("git revert --no-edit HEAD~1") == {"git.read"}
}

test_git_a_revert_with_an_editor if denied("git revert HEAD") == {"git.editor"}

test_git_a_cherry_pick if allowed("git cherry-pick -x abc123") == {"git.read"}

test_git_a_merge_by_another_program if allowed("git merge --strategy=evil main") == {"git.read"}
