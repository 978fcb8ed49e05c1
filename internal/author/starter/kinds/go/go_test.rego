package fumehood.command

test_go_integration_tests if {
	some r in deny with input.command as {"tool": "go", "options": [{"name": "-tags", "values": ["slow", "integration"]}]}
	r.rule == "repo.go-integration"
}

test_go_unit_tests if {
	count(deny) == 0 with input.command as {"tool": "go", "options": []}
}
