package fumehood.exec

test_worded_names_all_that_publish_by_a_word if {
	every tool, _ in publishing { worded[tool] }
}

test_a_registry_is_not_written_to if {
	npm := {"path": "/usr/bin/npm", "name": "npm", "names": ["npm"], "tool": "npm"}
	denied(object.union(npm, {"sub": "publish"})) == {"exec.publish"}
	denied(object.union(npm, {"sub": "test"})) == set()
}
