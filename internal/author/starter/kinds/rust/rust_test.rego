package fumehood.command

test_rust_benchmarks if {
	some r in deny with input.command as {"program": "cargo", "sub": "bench"}
	r.rule == "repo.rust-bench"
}

test_rust_tests if {
	count(deny) == 0 with input.command as {"program": "cargo", "sub": "test"}
}
