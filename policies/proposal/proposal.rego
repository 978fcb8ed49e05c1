package fumehood.proposal

import data.fumehood.lib

# METADATA
# title: Text whose effect is unknown before it runs is denied
# description: A decision needs text that can be read before it runs.
# custom:
#   rule: parse.
#   severity: low
#   category: text
#   floor: true
#   match: ["eval \"$x\"", "$cmd test", "bash -c \"$x\""]
#   not_match: ["go test ./..."]
deny contains lib.denial(u.code, u.message, u.hint) if some u in input.proposal.unknowns

# METADATA
# title: The working directory must be in the workspace
# custom: {rule: proposal.cwd, severity: low, category: files, floor: true}
deny contains lib.denial("proposal.cwd", "the working directory is outside the workspace", "name a directory relative to the workspace") if {
	not input.proposal.cwd.place in {"workspace", "control"}
}

# METADATA
# title: Outputs must be files in the workspace
# custom: {rule: proposal.outputs, severity: low, category: files, floor: true}
deny contains lib.denial(
	"proposal.outputs",
	sprintf("%q cannot be an output: it is not a file in the workspace", [o.value]),
	"use paths relative to the workspace, without .. and not under .git",
) if {
	some o in input.proposal.outputs
	bad_output(o)
}

bad_output(o) if not o.place in {"workspace", "control"}

bad_output(o) if startswith(o.value, "/")

bad_output(o) if ".." in split(o.value, "/")
