package fumehood.command

test_tracing_a_command if allowed("strace -f -o /tmp/x ./a.out") == {"wrapper.use"}

test_tracing_counts if allowed("perf stat -r 5 make test") == {"wrapper.use"}

test_tracing_a_process if denied("strace -p 1") == {"text.program"}

test_tracing_other_results if denied("strace -e inject=read:error=EIO ls") == {"trace.option"}

test_tracing_an_output_elsewhere if denied("strace -o /etc/x ls") == {"option.place"}

test_tracing_a_benchmark if allowed("hyperfine --warmup 3 'rg foo'") == {"wrapper.use"}

test_tracing_a_debugger if allowed("gdb -batch -ex run -ex bt --args ./a.out x") == {"debug.use"}

test_tracing_a_debugger_of_a_shell if denied("gdb -batch -ex run --args /bin/sh -c id") == {"launcher.hidden"}

test_tracing_a_script_of_the_debugger if denied("gdb -batch -x x ./a.out") == {"launcher.hidden"}

test_tracing_grants if {
	granted("strace ./a.out") == {"grant.trace"}
	granted("gdb -batch -ex run ./a.out") == {"grant.trace"}
	granted("gdb ./a.out") == set()
}
