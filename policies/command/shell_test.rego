package fumehood.command

test_shell_a_script_of_the_workspace if allowed("bash scripts/test.sh") == {"wrapper.use"}

test_shell_a_script_of_elsewhere if denied("bash /etc/x.sh") == {"shell.script"}

test_shell_a_script_that_the_run_made if {
	allowed("bash /tmp/r.sh") == {"wrapper.use"}
	"grant.built" in granted("bash /tmp/r.sh")
	every text in ["bash /tmp/../etc/x.sh", "bash /tmp"] { denied(text) == {"shell.script"} }
}

test_shell_profiles if denied("bash -lo pipefail -c ls") == {"shell.login"}

test_shell_another_folder if denied("cd /") == {"shell.cd"}

test_shell_every_process if denied("kill -9 -1") == {"shell.kill"}

test_shell_standard_input if denied("bash < x") == {"shell.script"}

test_shell_standard_input_of_a_named_script if {
	allowed("bash tests/a.sh < a.txt") == {"wrapper.use"}
	allowed("sh -eu ./a.sh x <<EOF\ndata\nEOF") == {"wrapper.use"}
	allowed("bash a.sh <<< data") == {"wrapper.use"}
}

test_shell_standard_input_is_the_program if {
	every text in [
		"bash -s x < a.txt", "bash -O extglob < a.txt", "bash -o posix < a.txt", "bash +O extglob < a.txt", "bash -- < a.txt", "bash - < a.txt",
		"bash --rcfile a.sh < a.txt", "bash --init-file a.sh -i < a.txt", "bash -es x < a.txt", "bash -i a.sh < a.txt", "bash /dev/stdin < a.txt",
		"bash /proc/self/fd/0 < a.txt", "bash /tmp/a.sh < a.txt", "bash ../a.sh < a.txt", "bash \"$X\" < a.txt", "bash *.sh < a.txt", "bash -o a.sh < a.sh",
		"bash --posix a.sh < a.txt", "sh <<EOF\nls\nEOF",
	] {
		"shell.script" in denied(text)
	}
}
