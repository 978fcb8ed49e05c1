package fumehood.egress

base := {
	"command": "t", "phase": "run", "kind": "connect", "name": "api.example.com", "type": "A", "address": "192.0.2.10", "port": 443, "protocol": "tcp", "sni": "", "method": "",
	"path": "", "query": 0, "size": 0, "secrets": [], "grants": ["api.example.com"], "naming": [entry], "named": true, "fits": true, "exact": true, "registries": [], "registry": false,
}

entry := {"text": "api.example.com", "kind": "name", "below": "", "port": 0, "fits": true}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(base, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(base, changes)

of_npm := {"naming": [], "named": false, "fits": false, "exact": false, "registries": ["npm"], "registry": true}

test_what_is_granted_passes if {
	allowed({}) == {"egress.connect"}
	denied({}) == set()
}

test_what_is_not_granted_is_refused_by_name if {
	other := {"name": "evil.example", "naming": [], "named": false, "fits": false, "exact": false}
	allowed(other) == set()
	denied(other) == {"egress.host"}
}

test_a_long_name_below_a_suffix_is_refused if {
	suffix := object.union(entry, {"kind": "suffix", "below": "a.b.c.d"})
	denied({"name": "a.b.c.d.example.com", "naming": [suffix], "exact": false}) == {"egress.long-name"}
}

test_a_registry_is_read_and_never_written_to if {
	read := object.union(of_npm, {"kind": "request", "protocol": "https", "method": "GET", "path": "/x"})
	allowed(read) == {"egress.registry-read"}
	denied(read) == set()
	denied(object.union(read, {"method": "PUT"})) == {"egress.registry-method"}
	denied(object.union(read, {"path": "/-/whoami"})) == {"egress.publish"}
}

test_a_registry_is_always_seen if {
	given := intercept with input as object.union(base, of_npm)
	given == {{"rule": "egress.registry-seen"}}
}

test_nothing_passes_of_an_unknown_kind if {
	every kind in {"", "datagram", "Connect", "tunnel"} { allowed({"kind": kind}) == set() }
}
