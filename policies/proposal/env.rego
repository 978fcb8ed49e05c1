package fumehood.proposal

import data.fumehood.lib

env contains {"rule": "env.allowed", "name": e.name} if {
	some e in input.proposal.env
	lib.env_ok(e.name, e.value)
}

# METADATA
# title: Only variables that steer no loader, interpreter or tool
# custom: {rule: env.name}
deny contains lib.denial("env.name", sprintf("the variable %s with this value %s", [e.name, lib.why_env(e.name)]), "leave it out, or give the option on the command line") if {
	some e in input.proposal.env
	not lib.env_ok(e.name, e.value)
}

# METADATA
# title: What lies near a refused program
programs contains name if some name in lib.programs
