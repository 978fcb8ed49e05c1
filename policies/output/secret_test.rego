package fumehood.output

usual := {"binary": false, "command": "t", "encodings": [], "ending": "", "found": 0, "kind": "stdout", "masked": 0, "name": "", "secrets": [], "size": 1}

with_secret := object.union(usual, {"found": 1, "secrets": [{"rule": "github-pat", "count": 1}]})

redacted(document) := {r.rule | some r in found} if found := redact with input as document

withheld(document) := {r.rule | some r in found} if found := deny with input as document

test_secret_in_a_text_is_replaced if {
	redacted(with_secret) == {"output.secret"}
	withheld(with_secret) == set()
}

test_secret_in_a_file_that_is_no_text if withheld(object.union(with_secret, {"binary": true})) == {"output.binary"}

test_secret_that_is_none if {
	redacted(usual) == set()
	withheld(object.union(usual, {"binary": true})) == set()
}
