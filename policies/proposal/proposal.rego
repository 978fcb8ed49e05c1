package fumehood.proposal

import data.fumehood.lib

# METADATA
# title: What cannot be known is not run
# description: A text that cannot be read before it runs cannot be judged.
# custom:
#   rule: parse.
#   match: ["eval \"$x\"", "$cmd test", "bash -c \"$x\""]
#   not_match: ["go test ./..."]
deny contains lib.denial(u.code, u.message, u.hint) if some u in input.proposal.unknowns

# METADATA
# title: Work inside the workspace
# custom: {rule: proposal.cwd}
deny contains lib.denial("proposal.cwd", "the working folder lies outside the workspace", "name a folder relative to the workspace") if {
	not input.proposal.cwd.place in {"workspace", "control"}
}

# METADATA
# title: Bring out files of the workspace only
# custom: {rule: proposal.outputs}
deny contains lib.denial("proposal.outputs", sprintf("%q is no file of the workspace to bring out", [o.value]), "name files by paths relative to the workspace, without .. and not under .git") if {
	some o in input.proposal.outputs
	bad_output(o)
}

bad_output(o) if not o.place in {"workspace", "control"}

bad_output(o) if startswith(o.value, "/")

bad_output(o) if ".." in split(o.value, "/")
