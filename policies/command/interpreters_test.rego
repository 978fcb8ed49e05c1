package fumehood.command

test_interpreters_code_of_the_text if allowed("python3 -c 'print(1)'") == {"code.run"}

test_interpreters_code_of_the_workspace if allowed("node scripts/x.js") == {"code.run"}

test_interpreters_code_of_elsewhere if denied("ruby /opt/x.rb") == {"code.outside", "code.place"}

test_interpreters_code_of_a_pipe if denied_with("cat x | perl", {"command": 1}) == {"code.stdin"}

test_interpreters_no_code if denied("node") == {"code.prompt"}

test_interpreters_code_of_run_time if denied("node -e \"$X\"") == {"code.dynamic"}

test_interpreters_a_prompt_of_options if denied("tclsh") == {"code.prompt"}
