package fumehood.command

test_tar_an_archive if allowed("tar czf /tmp/x.tgz pkg") == {"text.judged"}

test_tar_a_program if denied("tar xf x --to-command=sh") == {"text.program"}

test_tar_an_old_spelling if denied("tar xIf sh x") == {"tar.old"}
