package fumehood.command

test_trees_the_workspace if allowed("grep -rn x src") == {"text.read"}

test_trees_headers if allowed("find /usr/include -name stdio.h") == {"text.judged", "wrapper.use"}

test_trees_the_disk if denied("find / -name x") == {"read.tree"}
