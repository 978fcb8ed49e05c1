package fumehood.command

test_java_integration_tests if {
	some r in deny with input.command as {"tool": "gradle", "options": [], "operands": [{"value": "integrationTest"}]}
	r.rule == "repo.java-integration"
}

test_java_unit_tests if {
	count(deny) == 0 with input.command as {"tool": "gradle", "options": [], "operands": [{"value": "test"}]}
}
