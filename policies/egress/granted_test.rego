package fumehood.egress

test_what_is_granted_passes if {
	allowed({}) == {"egress.connect"}
	denied({}) == set()
}

test_nothing_passes_of_an_unknown_kind if {
	every kind in {"", "datagram", "Connect", "tunnel"} { allowed({"kind": kind}) == set() }
}

test_a_lookup_is_granted_by_name if {
	allowed({"kind": "lookup"}) == {"egress.lookup"}
}
