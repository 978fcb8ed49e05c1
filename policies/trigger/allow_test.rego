package fumehood.trigger

test_a_writer_runs if {
	denied({}) == set()
	allowed({}) == {"trigger.writer"}
}

test_nobody_by_name if {
	allowed({"bots": [8], "actor": {"type": "Bot", "login": "claude[bot]"}}) == set()
}
