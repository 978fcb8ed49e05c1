package fumehood.command

test_rust_tests if allowed("cargo test") == {"code.run"}

test_rust_a_plain_setting if allowed("cargo --config net.offline=true build") == {"code.run"}

test_rust_a_wrapper_of_the_compiler if denied("cargo --config build.rustc-wrapper=./x build") == {"code.program"}

test_rust_a_program_by_name if denied("cargo evil") == {"cargo.subcommand"}
