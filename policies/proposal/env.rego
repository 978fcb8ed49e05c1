package fumehood.proposal

import data.fumehood.lib

env contains {"rule": "env.allowed", "name": e.name} if {
	some e in input.proposal.env
	lib.env_ok(e.name, e.value)
}

# METADATA
# title: Variables that control a loader, interpreter or tool are denied
# custom: {rule: env.name}
deny contains lib.denial(
	"env.name",
	sprintf("the variable %s with this value %s", [e.name, lib.why_env(e.name)]),
	lib.env_fix(e.name),
) if {
	some e in input.proposal.env
	not lib.env_ok(e.name, e.value)
}

# METADATA
# title: Programs that a denial may suggest
programs contains name if some name in ((lib.programs | lib.inspectors) | lib.project_inspectors)
