package fumehood.proposal

import data.fumehood.lib

env contains {"rule": "env.allowed", "name": e.name} if {
	some e in input.proposal.env
	accepted(e)
}

# Any other variable is one of the proposal's own programs, as in its text: FOO=bar ./run.sh.
plain(e) if {
	not lib.steers(e.name)
	not lib.elsewhere(e.value)
	not names_program(e)
	not lib.guarded_output(e.name, e.place)
}

names_program(e) if {
	regex.match(`^[A-Z][A-Z0-9]{0,7}$`, e.name)
	regex.match(`^\.{0,2}/|^\.\.`, e.value)
}

# METADATA
# title: Variables that control a loader, interpreter or tool are denied
# custom: {rule: env.name, severity: medium, category: environment, floor: true}
deny contains lib.denial(
	"env.name",
	sprintf("the variable %s with this value %s", [e.name, lib.why_env(e.name)]),
	lib.env_fix(e.name),
) if {
	some e in input.proposal.env
	not accepted(e)
}

accepted(e) if {
	lib.env_ok(e.name, e.value)
	not lib.guarded_output(e.name, e.place)
}

accepted(e) if plain(e)

# METADATA
# title: Programs that a denial may suggest
programs contains name if some name in lib.programs
