package fumehood.command

test_git_history if allowed("git log --oneline") == {"git.read"}

test_git_a_push if denied("git push") == {"git.verb"}

test_git_configuration if denied("git config core.pager id") == {"git.verb"}

test_git_its_version if allowed("git --version") == {"git.read"}
