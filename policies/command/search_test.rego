package fumehood.command

test_search_a_pattern if allowed("rg -n TODO") == {"text.judged"}

test_search_a_preprocessor if denied("rg --pre ./x foo") == {"rg.program"}

test_search_a_command if denied("fd -x rm") == {"fd.program"}
