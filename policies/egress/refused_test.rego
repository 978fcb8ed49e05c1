package fumehood.egress

test_what_is_not_granted_is_refused_by_name if {
	other := {"name": "evil.example", "naming": [], "named": false, "fits": false, "exact": false}
	allowed(other) == set()
	denied(other) == {"egress.host"}
}

test_a_long_name_below_a_suffix_is_refused if {
	suffix := object.union(entry, {"kind": "suffix", "below": "a.b.c.d"})
	denied({"name": "a.b.c.d.example.com", "naming": [suffix], "exact": false}) == {"egress.long-name"}
}

# The registry that has the host is offered to set-up by its name.
hint(changes) := {r.suggestion | some r in found; r.rule == "egress.host"} if {
	found := deny with input as object.union(base, object.union({"named": false, "naming": [], "kind": "lookup"}, changes))
}

test_release_assets_are_offered_by_name if {
	every name in {"github.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com"} {
		some text in hint({"name": name, "phase": "setup"})
		contains(text, "list `github-releases` in `registries`")
		every other in hint({"name": name}) {
			not contains(other, "github-releases")
		}
	}
}
