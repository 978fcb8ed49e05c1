package fumehood.trigger

test_a_writer_runs if {
	denied({}) == set()
	allowed({}) == {"trigger.writer"}
}

test_names_do_not_count if {
	allowed({"bots": [8], "actor": {"type": "Bot", "login": "claude[bot]"}}) == set()
}
