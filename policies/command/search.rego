# rg, fd and bat may search and print. They must not run a preprocessor, a pager or a
# command for what they find.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: rg must not run programs
# custom:
#   rule: rg.program
#   match: ["rg --pre ./x foo", "rg --pre=cat x", "rg --hostname-bin id x"]
#   not_match: ["rg -n TODO", "rg --pre-glob '*.pdf' x"]
deny contains lib.denial("rg.program", sprintf("rg's %s runs a program", [o.name]), "remove the option") if {
	input.command.program == "rg"
	some o in input.command.effects
	o.kind == "run"
}

# METADATA
# title: fd and bat must not run programs
# custom:
#   rule: fd.program
#   match: ["fd -x rm", "fd --exec id", "fd -e go -X cat", "bat --pager=x y", "bat --pager ./x y"]
#   not_match: ["fd -e go parse", "fd --type f --extension py", "bat --plain src/a.rs"]
deny contains lib.denial("fd.program", sprintf("%s's %s runs a program", [input.command.program, e.name]), "remove the option") if {
	input.command.program in {"fd", "fdfind", "bat", "batcat"}
	some e in input.command.effects
	e.kind == "run"
}
