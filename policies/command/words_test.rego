package fumehood.command

test_words_after_dashes if allowed("sort -- $f") == {"text.read"}

test_words_a_word_of_run_time if allowed("git log $x") == {"git.read"}

test_words_an_unknown_option if denied("rg --frobnicate x") == {"option.unknown"}

test_words_what_xargs_reads if allowed_with("ls | xargs cargo build", {"command": 2}) == {"code.run"}
