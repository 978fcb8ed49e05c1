package fumehood.command

test_outside_a_build_under_tmp if allowed("cmake -S . -B /tmp/build") == {"code.run"}

test_outside_headers_of_the_system if allowed("gcc -I/usr/include/x a.c") == {"code.run"}

test_outside_headers_of_elsewhere if denied("gcc -I/opt/x a.c") == {"code.outside"}
