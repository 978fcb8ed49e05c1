package fumehood.command

test_go_integration_tests if {
	some r in deny with input as fumehood.parse("go test -tags integration ./...")
	r.rule == "repo.go-integration"
}

test_go_unit_tests if {
	count(deny) == 0 with input as fumehood.parse("go test ./...")
}
