package fumehood.command

base := {
	"argv": [], "assigns": [], "function": false, "homes": [], "index": 0, "inside": [], "loose": false, "operands": [], "options": [], "place": "lookup",
	"program": "", "redirects": [], "script": {"plain": true, "why": ""}, "static": true, "stdin_from": "", "sub": "", "unknown": [], "via": [], "written": "",
}

rules(command) := {r.rule | some r in denials(command)}

denials(command) := found_denials if found_denials := deny with input.command as object.union(base, command)

test_sort_output_outside if {
	rules({"program": "sort", "options": [{"name": "--output", "value": "/etc/x", "static": true, "place": "outside"}]}) == {"option.place"}
}

test_sort_output_inside if {
	rules({"program": "sort", "options": [{"name": "--output", "value": "x", "static": true, "place": "workspace"}]}) == set()
}

test_script_that_is_not_plain if {
	rules({"program": "awk", "script": {"plain": false, "why": "w"}}) == {"awk.script"}
}

test_option_that_is_not_known if {
	rules({"program": "sed", "unknown": ["--evil"]}) == {"option.unknown"}
}

test_loose_words_of_guarded_tools if {
	rules({"program": "tar", "argv": ["x"], "operands": [{"value": "xf", "static": true, "glob": false, "place": "workspace"}, {"value": "x", "static": true, "glob": false, "place": "workspace"}], "loose": true}) == {"option.smuggled"}
}

test_no_allow_without_a_known_program if {
	count(allow) == 0 with input.command as object.union(base, {"program": "mystery"})
}

test_path_of_another_program if {
	count(allow) == 0 with input.command as object.union(base, {"program": "/opt/cat", "place": "outside"})
}
