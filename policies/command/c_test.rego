package fumehood.command

test_c_a_build if allowed("cmake --build build") == {"code.run"}

test_c_a_compiler if allowed("gcc -Wall a.c -o a") == {"code.run"}

test_c_a_wrapper_of_the_compiler if denied("gcc -wrapper ./x a.c") == {"code.program"}

test_c_a_script_of_cmake if denied("cmake -P x.cmake") == {"code.program"}

test_c_valgrind_of_a_shell if denied("valgrind bash -c id") == {"valgrind.program"}

test_c_an_installation if denied("cmake --install build") == {"code.program", "code.target"}
