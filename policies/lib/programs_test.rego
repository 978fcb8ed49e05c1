package fumehood.lib

test_programs_are_in_one_table if {
	readers & runners == set()
	readers & changers == set()
	runners & judged == set()
	plain - runners == set()
}

test_programs_that_are_known_are_not_refused if {
	every name in ((readers | runners) | changers) | judged { not refused[name] }
}
