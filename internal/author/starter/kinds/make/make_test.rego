package fumehood.command

test_make_release if {
	some r in deny with input.command as {"program": "make", "operands": [{"value": "release"}]}
	r.rule == "repo.make-release"
}

test_make_tests if {
	count(deny) == 0 with input.command as {"program": "make", "operands": [{"value": "test"}]}
}
