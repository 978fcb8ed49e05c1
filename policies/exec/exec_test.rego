package fumehood.exec

base := {
	"argv": [], "argv_cut": false, "argv_digest": "", "asked": "/usr/bin/git", "command": "t", "cwd": "/workspace", "digest": "sha256:00",
	"elf": {"interpreter": "", "loader": false, "soname": "", "static": false, "type": "dyn"}, "env": [], "first": false, "from": "/usr/bin/bash",
	"grants": [], "layer": "rootfs", "loaded": false, "chain": [], "under": "", "listed": false,
	"many": false, "name": "git", "names": ["git"], "parent": "/usr/bin/bash", "path": "/usr/bin/git", "same": [], "script": "", "sub": "",
	"tool": "git", "words": [],
}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(base, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(base, changes)

test_no_allow_without_facts if count(allow) == 0 with input as {}

test_the_base_is_allowed if allowed({}) != set()
