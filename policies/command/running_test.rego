package fumehood.command

test_running_code_is_no_path if allowed("python3 -c 'open(\"/etc/hosts\")'") == {"code.run"}

test_running_an_operand_is if denied("./run.sh /etc/x") == {"code.outside"}
