package fumehood.command

test_redirects_under_tmp if allowed("echo x > /tmp/out.txt") == {"text.read"}

test_redirects_a_hook if denied("echo x > .git/hooks/pre-commit") == {"redirect.place"}

test_redirects_a_name_of_run_time if denied("echo x > \"$f\"") == {"redirect.place"}
