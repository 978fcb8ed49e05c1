package fumehood.event

usual := {
	"call": "", "code": "", "command": "t", "domain": "", "errno": "", "host": "", "kind": "connect", "method": "", "name": "curl", "path": "",
	"port": 0, "program": "/usr/bin/curl",
	"protocol": "tcp", "received": 0, "refused": false, "route": "", "rule": "", "sent": 0, "sni": "", "socket": "", "target": "", "unverified": false,
}

noted(changes) := {r.rule | some r in found} if found := note with input as object.union(usual, changes)

test_note_of_nothing if noted({"host": "192.0.2.1", "port": 443}) == set()

test_note_of_credentials if noted({"host": "169.254.169.254", "port": 80}) == {"event.metadata"}

test_note_of_the_kernel if noted({"kind": "privilege", "call": "mount"}) == {"event.kernel"}

test_note_of_a_system_file if {
	noted({"kind": "write", "path": "/etc/passwd"}) == {"event.system-file"}
	noted({"kind": "write", "path": "/workspace/etc/passwd"}) == set()
}

test_note_of_a_control_place if {
	noted({"kind": "link", "path": "/workspace/.git/hooks/pre-commit", "errno": "EACCES"}) == {"event.control-place"}
	noted({"kind": "link", "path": "/workspace/.gitmodules", "errno": "EACCES"}) == set()
}
