package fumehood.trigger

usual := {
	"command": "run", "event": "issue_comment", "bots": [],
	"actor": {"login": "mona", "id": 9, "type": "User", "permission": "write", "author": false},
	"pr": {"number": 7, "state": "open", "draft": false, "locked": false, "fork": false, "head": "0123456789abcdef0123456789abcdef01234567"},
	"runs": {"pr": 0, "day": 0, "max_pr": 20, "max_day": 100},
}

denied(changes) := {r.rule | some r in found} if found := deny with input as object.union(usual, changes)

allowed(changes) := {r.rule | some r in found} if found := allow with input as object.union(usual, changes)

test_no_allow_without_facts if count(allow) == 0 with input as {}

test_the_usual_comment_is_allowed if allowed({}) != set()
