package fumehood.command

test_node_deploy if {
	some r in deny with input as fumehood.parse("npm run deploy")
	r.rule == "repo.node-deploy"
}

test_node_tests if {
	count(deny) == 0 with input as fumehood.parse("npm test")
}
