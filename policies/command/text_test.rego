package fumehood.command

test_text_a_difference if allowed("diff -u a b") == {"text.read"}

test_text_a_pager if denied("diff -l a b") == {"text.program"}

test_text_a_prefix_of_elsewhere if denied("patch -p1 --ed") == {"text.program"}

test_text_a_compressor if denied("sort --compress-program=sh x") == {"sort.program"}

test_text_a_calculator if denied("dc") == {"dc.program"}
