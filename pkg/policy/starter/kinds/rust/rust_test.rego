package fumehood.command

test_rust_benchmarks if {
	some r in deny with input as fumehood.parse("cargo bench")
	r.rule == "repo.rust-bench"
}

test_rust_tests if {
	count(deny) == 0 with input as fumehood.parse("cargo test")
}
