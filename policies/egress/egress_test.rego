package fumehood.egress

base := {
	"command": "t", "phase": "run", "kind": "connect", "name": "api.example.com", "type": "A", "address": "192.0.2.10", "port": 443, "protocol": "tcp",
	"sni": "", "method": "",
	"path": "", "escaped": false, "query": 0, "size": 0,
	"secrets": [], "grants": ["api.example.com"], "naming": [entry], "named": true, "fits": true, "exact": true,
	"registries": [], "registry": false,
}

entry := {"text": "api.example.com", "kind": "name", "below": "", "port": 0, "fits": true}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(base, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(base, changes)

of_npm := {"naming": [], "named": false, "fits": false, "exact": false, "registries": ["npm"], "registry": true}

test_no_allow_without_facts if count(allow) == 0 with input as {}

test_the_base_is_allowed if allowed({}) != set()
