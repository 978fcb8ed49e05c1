package fumehood.command

test_programs_ordinary_options if allowed("bazel test //pkg:x") == {"code.run"}

test_programs_a_program_under_the_test if denied("bazel test --run_under=sh //x") == {"code.program"}

test_programs_an_agent if denied("java -javaagent:/tmp/x.jar A") == {"code.elsewhere", "code.program"}

test_programs_words_in_a_file if denied("gcc @args a.c") == {"code.arguments", "code.option"}
