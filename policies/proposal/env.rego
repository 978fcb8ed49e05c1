package fumehood.proposal

import data.fumehood.lib

env contains {"rule": "env.allowed", "name": e.name} if {
	some e in input.proposal.env
	lib.env_ok(e.name, e.value)
}

# Any other variable is one of the proposal's own programs, as in its text: FOO=bar ./run.sh.
env contains {"rule": "env.plain", "name": e.name} if {
	some e in input.proposal.env
	plain(e)
}

plain(e) if {
	not lib.steers(e.name)
	not lib.elsewhere(e.value)
	not names_program(e)
	not hidden_output(e)
}

names_program(e) if {
	regex.match(`^[A-Z][A-Z0-9]{0,7}$`, e.name)
	regex.match(`^\.{0,2}/|^\.\.`, e.value)
}

hidden_output(e) if {
	regex.match(`(?i)(OUT|LOG|REPORT|RESULT|TRACE|DUMP)`, e.name)
	regex.match(`(^|/)\.[^/.]`, e.value)
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
	not plain(e)
}

# METADATA
# title: Programs that a denial may suggest
programs contains name if some name in ((lib.programs | lib.inspectors) | lib.project_inspectors)
