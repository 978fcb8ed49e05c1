package fumehood.command

test_node_deploy if {
	some r in deny with input.command as {"program": "npm", "sub": "run", "operands": [{"value": "deploy"}]}
	r.rule == "repo.node-deploy"
}

test_node_tests if {
	count(deny) == 0 with input.command as {"program": "npm", "sub": "test", "operands": []}
}
