package fumehood.proposal

test_four_gib_need_nobody if {
	count(ask) == 0 with input.proposal.limits.memory_bytes as 4294967296
}

test_more_needs_a_person if {
	some r in ask with input.proposal.limits.memory_bytes as 4294967297
	r.rule == "repo.memory"
}
