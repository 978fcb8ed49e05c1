package fumehood.exec

test_a_copy_is_what_it_copies if {
	denied({"path": "/tmp/x", "name": "x", "names": ["x", "curl"], "layer": "written", "grants": ["built"]}) == {"exec.network"}
}

test_a_loader_is_known_by_its_headers if {
	every facts in [{"loader": true}, {"soname": "ld-linux-x86-64.so.2"}, {"interpreter": "/workspace/ld-linux-x86-64.so.2"}, {"interpreter": "?"}] {
		denied({"path": "/tmp/x", "name": "x", "names": ["x"], "layer": "written", "grants": ["built"], "elf": object.union(base.elf, facts)}) == {"exec.loader"}
	}
}

test_git_starts_its_own_programs if {
	denied({"from": "/usr/bin/git", "path": "/usr/bin/bash", "name": "bash", "names": ["bash"]}) == {"exec.git"}
	denied({"from": "/usr/bin/git"}) == set()
	denied({"from": "/usr/bin/git", "path": "/tmp/git", "layer": "written"}) == {"exec.grant"}
}

test_a_grant_of_hosts_frees_clients_only if {
	denied({"name": "curl", "names": ["curl"], "grants": ["network"]}) == set()
	denied({"name": "sudo", "names": ["sudo"], "grants": ["network", "built"]}) == {"exec.privilege"}
}

test_the_tool_of_a_manifold_program_counts_there_alone if {
	denied({"name": "busybox", "names": ["busybox"], "many": true, "tool": "nc"}) == {"exec.network"}
	denied({"tool": "nc"}) == set()
}

test_a_client_of_localhost if {
	denied({"name": "curl", "names": ["curl"], "grants": ["localhost"]}) == set()
	denied({"name": "ssh", "names": ["ssh"], "grants": ["localhost"]}) == {"exec.network"}
}

test_a_tracer_that_the_text_names if {
	denied({"name": "strace", "names": ["strace"], "grants": ["trace"]}) == set()
	denied({"name": "strace", "names": ["strace"], "grants": ["built"]}) == {"exec.debugger"}
}
