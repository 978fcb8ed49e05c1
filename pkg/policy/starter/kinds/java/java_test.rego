package fumehood.command

test_java_integration_tests if {
	some r in deny with input as fumehood.parse("mvn verify -Pintegration")
	r.rule == "repo.java-integration"
}

test_java_unit_tests if {
	count(deny) == 0 with input as fumehood.parse("mvn test")
}
