package fumehood.proposal

given(fields) := found if found := limits with input as fumehood.parse_with("go test ./...", object.union({"command": -1}, fields))

test_limits_by_default if given({}) == {usual}

test_limits_that_were_asked_for if {
	asked := {"limits": {"cpus": 2}}
	denied(asked) == set()
	given(asked) == {object.union(usual, {"cpus": 2})}
}

test_limits_beyond_the_most if denied({"limits": {"cpus": 65}}) == {"limits.too-much"}
