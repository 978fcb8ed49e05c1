package fumehood.trigger

usual := {
	"command": "run", "event": "issue_comment", "bots": [],
	"actor": {"login": "mona", "id": 9, "type": "User", "permission": "write", "author": false},
	"pr": {"number": 7, "state": "open", "draft": false, "locked": false, "fork": false, "head": "0123456789abcdef0123456789abcdef01234567"},
	"runs": {"pr": 0, "day": 0, "max_pr": 20, "max_day": 100},
}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(usual, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(usual, changes)

test_a_writer_runs if {
	denied({}) == set()
	allowed({}) == {"trigger.writer"}
}

test_the_author_never_approves if {
	denied({"command": "approve", "actor": {"permission": "admin", "author": true}}) == {"trigger.own-approval"}
}

test_a_listed_bot_never_approves if {
	changes := {"command": "approve", "bots": [9], "actor": {"type": "Bot", "permission": "admin"}}
	denied(changes) == {"trigger.bot"}
	allowed(changes) == set()
}

test_nobody_by_name if {
	allowed({"bots": [8], "actor": {"type": "Bot", "login": "claude[bot]"}}) == set()
}

test_the_last_run_of_a_budget if {
	denied({"runs": {"pr": 19, "day": 99}}) == set()
	denied({"runs": {"pr": 20, "day": 100}}) == {"trigger.budget-pr", "trigger.budget-day"}
}
