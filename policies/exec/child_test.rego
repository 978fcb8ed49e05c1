package fumehood.exec

test_a_tool_starts_only_its_list if {
	below := {"chain": ["tar"], "under": "tar", "path": "/usr/bin/id"}
	denied(below) == {"exec.child"}
	denied(object.union(below, {"listed": true})) == set()
	denied(object.union(below, {"under": "", "chain": []})) == set()
}

test_the_repository_needs_a_grant if {
	below := {"chain": ["gdb"], "under": "gdb", "path": "/workspace/x", "layer": "workspace"}
	denied(below) == {"exec.grant"}
	denied(object.union(below, {"grants": ["built"]})) == set()
	denied(object.union(below, {"grants": ["built"], "same": ["/usr/bin/id"]})) == {"exec.child"}
}
