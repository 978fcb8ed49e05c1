package fumehood.exec

test_nothing_begins_from_memory_or_elsewhere if {
	every layer in {"memory", "other", "", "Rootfs"} { allowed({"layer": layer, "grants": ["built", "network"]}) == set() }
}

test_a_place_where_no_program_lies if {
	denied({"path": "/etc/init.d/x", "name": "x", "names": ["x"]}) == {"exec.place"}
	denied({"path": "/memfd:x", "name": "memfd:x", "names": ["memfd:x"], "layer": "memory", "grants": ["built"]}) == {"exec.memory"}
}
