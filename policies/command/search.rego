# rg, fd and bat may search and print. They run no preprocessor, no pager and no command for
# what they find.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: rg runs no preprocessor
# custom:
#   rule: rg.program
#   match: ["rg --pre ./x foo", "rg --pre=cat x", "rg --hostname-bin id x"]
#   not_match: ["rg -n TODO", "rg --pre-glob '*.pdf' x"]
deny contains lib.denial("rg.program", sprintf("rg's %s runs the program it names", [o.name]), "leave the option out") if {
	input.command.program == "rg"
	some o in input.command.effects
	o.kind == "run"
}

# METADATA
# title: fd and bat run no program
# custom:
#   rule: fd.program
#   match: ["fd -x rm", "fd --exec id", "fd -e go -X cat", "bat --pager=x y", "bat --pager ./x y"]
#   not_match: ["fd -e go parse", "fd --type f --extension py", "bat --plain src/a.rs"]
deny contains lib.denial("fd.program", sprintf("%s's %s runs a program", [input.command.program, e.name]), "leave the option out") if {
	input.command.program in {"fd", "fdfind", "bat", "batcat"}
	some e in input.command.effects
	e.kind == "run"
}
