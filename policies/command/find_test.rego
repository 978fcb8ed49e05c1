package fumehood.command

test_find_a_search if allowed("find . -name '*.go'") == {"text.judged", "wrapper.use"}

test_find_removal_in_the_workspace if allowed("find . -name x -delete") == {"text.judged", "wrapper.use"}

test_find_removal_elsewhere if denied("find .git -delete") == {"find.write"}
