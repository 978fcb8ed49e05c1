package fumehood.exec

loaded(changes) := object.union({"path": "/workspace/x.so", "name": "x.so", "names": ["x.so"], "layer": "workspace", "loaded": true, "tool": ""}, changes)

test_loaded_code_needs_the_grant if {
	every layer in ["workspace", "written", "memory", "other"] {
		denied(loaded({"layer": layer})) == {"exec.load"}
		denied(loaded({"layer": layer, "grants": ["built"]})) == set()
		"exec.loaded" in allowed(loaded({"layer": layer, "grants": ["built"]}))
	}
}

test_a_library_is_not_a_program_of_its_name if {
	every name in ["ssh", "libc.so.6", "ld-linux-x86-64.so.2", "gdb"] {
		denied(loaded({"name": name, "names": [name], "elf": object.union(base.elf, {"loader": true}), "grants": ["built"]})) == set()
	}
}
