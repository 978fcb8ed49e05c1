package fumehood.command

test_verbs_a_listing if allowed("npm ls") == {"code.run"}

test_verbs_a_registry if denied("npm view lodash") == {"code.verb"}
