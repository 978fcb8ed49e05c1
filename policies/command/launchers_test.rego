package fumehood.command

test_launchers_a_known_tool if allowed("poetry run pytest") == {"code.run"}

test_launchers_a_shell if denied("bundle exec sh x") == {"code.launcher"}

test_launchers_code_of_run_time if denied("poetry run python -c \"$X\"") == {"code.dynamic"}
