package fumehood.command

test_make_release if {
	some r in deny with input as fumehood.parse("make release")
	r.rule == "repo.make-release"
}

test_make_tests if {
	count(deny) == 0 with input as fumehood.parse("make test")
}
