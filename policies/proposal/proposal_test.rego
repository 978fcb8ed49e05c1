package fumehood.proposal

# denied are the rules that refuse a proposal of one harmless command with these fields.
denied(fields) := denied_text("go test ./...", fields)

denied_text(text, fields) := ids if {
	rules := deny with input as fumehood.parse_with(text, object.union({"command": -1}, fields))
	ids := {r.rule | some r in rules}
}

test_proposal_in_a_folder_of_the_workspace if denied({"cwd": "pkg"}) == set()

test_proposal_in_another_folder if denied({"cwd": "../x"}) == {"proposal.cwd"}

test_proposal_brings_out_a_file if denied({"outputs": ["out/a.txt"]}) == set()

test_proposal_brings_out_another_file if {
	every path in {"../x", "/etc/passwd", ".git/config"} { denied({"outputs": [path]}) == {"proposal.outputs"} }
}

test_proposal_that_cannot_be_read if denied_text("eval \"$x\"", {}) == {"parse.eval"}
