package fumehood.command

test_inspectors_write_no_control_files if {
	every text in ["grype dir:. --file .npmrc", "ffmpeg -i a.mkv conftest.py", "convert a.png r:conftest.py", "uv run pip-audit -o.npmrc"] {
		denied(text) == {"option.place"}
	}
}

test_inspectors_stay_inside if denied("detekt --input /etc/x") == {"code.outside"}

test_inspectors_are_not_fetched if {
	denied("npx sqlc vet") != set()
	denied("npx --no-install mmdc -i a.mmd") == set()
}

# configured is the answer to text if the configuration has its program.
configured(text) := ids if {
	parsed := fumehood.parse(text)
	given := object.union(parsed, {"command": {"configured": true, "inspector": true}})
	denials := {r.rule | some r in denied_set} with input as given
	allows := {r.rule | some r in allow} with input as given
	ids := allows - denials
	denials == set()
}

denied_set contains r if some r in deny

test_inspectors_of_the_configuration if {
	configured("acmelint src") == {"tool.configured"}
	not configured("acmelint --plugin ./x src")
	not configured("acmelint tcp://x")
	configured("watchexec ls") == set()
	not configured("sudo id")
}

test_inspectors_of_projects_run_their_code if {
	granted("elm-test") == {"grant.inspector"}
	granted("grype dir:.") == set()
}
