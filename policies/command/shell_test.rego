package fumehood.command

test_shell_a_script_of_the_workspace if allowed("bash scripts/test.sh") == {"wrapper.use"}

test_shell_a_script_of_elsewhere if denied("bash /tmp/x.sh") == {"shell.script"}

test_shell_profiles if denied("bash --login -c ls") == {"shell.login"}

test_shell_another_folder if denied("cd /") == {"shell.cd"}

test_shell_every_process if denied("kill -9 -1") == {"shell.kill"}

test_shell_standard_input if denied("bash < x") == {"shell.script"}
