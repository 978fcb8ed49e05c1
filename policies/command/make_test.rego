package fumehood.command

test_make_a_target if allowed("make -j4 test") == {"code.run"}

test_make_recipes_of_the_command_line if denied("make --eval='x:;id'") == {"code.program", "make.option"}

test_make_a_shell if denied("make SHELL=./x") == {"code.target", "make.option"}

test_make_an_installation if denied("make install") == {"code.target"}
