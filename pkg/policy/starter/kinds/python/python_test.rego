package fumehood.command

test_python_integration_tests if {
	some r in deny with input as fumehood.parse("pytest -m integration")
	r.rule == "repo.python-integration"
}

test_python_unit_tests if {
	count(deny) == 0 with input as fumehood.parse("pytest -q tests")
}
