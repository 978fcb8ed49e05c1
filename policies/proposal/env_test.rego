package fumehood.proposal

let_in(variables) := {e.name | some e in found} if found := env with input as fumehood.parse_with("go test ./...", {"command": -1, "env": variables})

test_env_of_plain_values if {
	let_in({"CI": "1"}) == {"CI"}
	denied({"env": {"CI": "1"}}) == set()
}

test_env_as_in_a_text if {
	let_in({"FOO": "bar"}) == {"FOO"}
	every e in [{"FOO": "/etc/x"}, {"FOO": "./x"}, {"MY_TOOL_PATH": "x"}, {"A_TOKEN": "x"}, {"X_REPORT": ".git/hooks/x"}] {
		denied({"env": e}) == {"env.name"}
	}
}

test_env_that_steers if {
	let_in({"LD_PRELOAD": "./x.so"}) == set()
	denied({"env": {"LD_PRELOAD": "./x.so"}}) == {"env.name"}
}

test_env_with_a_value_that_leads_out if denied({"env": {"TMPDIR": "/etc"}}) == {"env.name"}
