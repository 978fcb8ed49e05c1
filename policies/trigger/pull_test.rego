package fumehood.trigger

test_the_last_run_of_a_budget if {
	denied({"runs": {"pr": 19, "day": 99}}) == set()
	denied({"runs": {"pr": 20, "day": 100}}) == {"trigger.budget-pr", "trigger.budget-day"}
}

test_nothing_starts_on_a_closed_pull_request if {
	denied({"pr": {"state": "closed"}}) == {"trigger.closed"}
	denied({"command": "help", "pr": {"state": "closed"}}) == set()
}
