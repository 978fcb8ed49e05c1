package fumehood.exec

base := {
	"argv": [], "argv_cut": false, "argv_digest": "", "command": "t", "cwd": "/workspace", "digest": "sha256:00", "env": [], "first": false, "grants": [], "layer": "rootfs",
	"many": false, "name": "git", "names": ["git"], "parent": "/usr/bin/bash", "path": "/usr/bin/git", "same": [], "script": "", "sub": "", "tool": "git", "words": [],
}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(base, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(base, changes)

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

test_a_copy_is_what_it_copies if {
	denied({"path": "/tmp/x", "name": "x", "names": ["x", "curl"], "layer": "written", "grants": ["built"]}) == {"exec.network"}
}

test_a_grant_of_hosts_frees_clients_only if {
	denied({"name": "curl", "names": ["curl"], "grants": ["network"]}) == set()
	denied({"name": "sudo", "names": ["sudo"], "grants": ["network", "built"]}) == {"exec.privilege"}
}

test_the_tool_of_a_manifold_program_counts_there_alone if {
	denied({"name": "busybox", "names": ["busybox"], "many": true, "tool": "nc"}) == {"exec.network"}
	denied({"tool": "nc"}) == set()
}

test_nothing_begins_from_memory_or_elsewhere if {
	every layer in {"memory", "other", "", "Rootfs"} { allowed({"layer": layer, "grants": ["built", "network"]}) == set() }
}

test_worded_names_all_that_publish_by_a_word if {
	every tool, _ in publishing { worded[tool] }
}
