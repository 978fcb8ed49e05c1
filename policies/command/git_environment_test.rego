package fumehood.command

test_git_keeps_its_environment if denied("env -i git status") == {"git.environment"}

test_git_keeps_its_variables if denied("unset GIT_CONFIG_COUNT; git status") == {"git.environment"}

test_git_has_other_variables if denied("env FOO=1 git grep -i x") == set()
