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
