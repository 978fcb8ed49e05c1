package fumehood.command

test_python_integration_tests if {
	some r in deny with input.command as {"tool": "pytest", "options": [{"name": "-m", "values": ["integration"]}]}
	r.rule == "repo.python-integration"
}

test_python_unit_tests if {
	count(deny) == 0 with input.command as {"tool": "pytest", "options": [{"name": "-m", "values": ["not", "integration"]}]}
}
