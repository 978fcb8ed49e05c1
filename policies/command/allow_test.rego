package fumehood.command

test_allow_a_reader if allowed("wc -l README.md") == {"text.read"}

test_allow_a_builtin if allowed("cd pkg") == {"shell.builtin"}

test_allow_an_assignment if allowed("x=1") == {"shell.assign"}

test_allow_a_wrapper if allowed("timeout 60 go vet ./...") == {"wrapper.use"}

test_allow_a_script_of_the_workspace if allowed("./scripts/check.sh") == {"code.workspace"}

test_allow_a_change if allowed("mkdir -p out") == {"files.change"}

test_allow_a_judged_tool if allowed("awk '{print $1}' x") == {"text.judged"}
