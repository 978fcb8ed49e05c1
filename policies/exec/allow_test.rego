package fumehood.exec

test_a_program_of_the_root_begins if {
	denied({}) == set()
	allowed({}) == {"exec.rootfs"}
}

test_a_built_program_needs_its_grant if {
	built := {"path": "/tmp/x.test", "name": "x.test", "names": ["x.test"], "layer": "written"}
	denied(built) == {"exec.grant"}
	allowed(built) == set()
	allowed(object.union(built, {"grants": ["built"]})) == {"exec.built"}
	denied(object.union(built, {"grants": ["built"]})) == set()
}
