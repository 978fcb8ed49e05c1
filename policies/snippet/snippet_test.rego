package fumehood.snippet_test

import data.fumehood.snippet

snippet_with(code) := {"snippet": {"findings": [{"code": code, "message": "does it", "line": 2}]}}

test_each_finding_is_refused_by_one_rule_or_none if {
	expected := {
		"decoded-code": {"snippet.hidden-code"}, "fetched-code": {"snippet.hidden-code"},
		"built-name": {"snippet.hidden-name"}, "odd-name": {"snippet.hidden-name"},
		"interpreter-internals": {"snippet.internals"}, "native-code": {"snippet.native"}, "too-large": {"snippet.unread"},
		"dynamic-code": set(), "dynamic-import": set(), "dynamic-attribute": set(), "dynamic-text": set(), "remote-host": set(),
	}
	every code, rules in expected {
		denied := {d.rule | some d in snippet.deny} with input as snippet_with(code)
		denied == rules
	}
}

checked_with(code) := {"snippet": {"syntax_only": true, "findings": [{"code": code, "message": "does it", "line": 2}]}}

test_syntax_that_is_only_checked_is_not_refused if {
	count(snippet.deny) == 0 with input as checked_with("not-understood")
	every code in ["too-large", "too-long", "unreadable", "encoding", "decoded-code"] {
		count(snippet.deny) == 1 with input as checked_with(code)
	}
}

test_a_refusal_names_the_line if {
	some d in snippet.deny with input as snippet_with("decoded-code")
	d.message == "line 2 of the snippet does it"
}
