package fumehood.proposal

test_four_gib_need_no_approval if {
	count(ask) == 0 with input.proposal.limits.memory_bytes as 4294967296
}

test_more_needs_approval if {
	some r in ask with input.proposal.limits.memory_bytes as 4294967297
	r.rule == "repo.memory"
}
