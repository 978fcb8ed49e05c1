package fumehood.command

# allowed, denied and granted are the rules that answer to the first command of a text:
# to be allowed is to be denied by none.
allowed(text) := allowed_with(text, {})

denied(text) := denied_with(text, {})

allowed_with(text, options) := ids if {
	denied_with(text, options) == set()
	rules := allow with input as fumehood.parse_with(text, options)
	ids := {r.rule | some r in rules}
}

denied_with(text, options) := ids if {
	rules := deny with input as fumehood.parse_with(text, options)
	ids := {r.rule | some r in rules}
}

granted(text) := ids if {
	rules := exec with input as fumehood.parse(text)
	ids := {r.rule | some r in rules}
}

# hosts are what a proposal asks for, and what was granted to it if it runs.
hosts := {"network": ["api.example.com:443"]}

test_no_allow_without_a_known_program if {
	allowed("mystery") == set()
	allowed("/opt/cat x") == set()
}

test_a_deny_wins_over_an_allow if not allowed("make deploy")
