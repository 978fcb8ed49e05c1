package fumehood.command

test_text_a_difference if allowed("diff -u a b") == {"text.read"}

test_text_a_program_that_the_kernel_refuses if allowed("diff -l a b") == {"text.read"}

test_text_a_prefix_of_elsewhere if denied("patch -p1 --ed") == {"text.program"}

test_text_a_tool_for_each_file if denied("fd -x rm") == {"text.program"}

test_text_a_compressor if allowed("sort --compress-program=sh x") == {"text.read"}
