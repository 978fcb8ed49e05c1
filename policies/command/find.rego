# find may search; what -exec runs is judged by itself. It removes files in the workspace and
# /tmp only.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: find changes files of the workspace only
# custom:
#   rule: find.write
#   match: ["find / -delete", "find /etc -name x -delete", "find . -fprint /etc/x", "find .git -delete"]
#   not_match: ["find . -name '*.tmp' -delete", "find . -type f -name '*.go'"]
deny contains lib.denial("find.write", "find -delete and -fprint work in the workspace and /tmp only", "search below a folder of the workspace, and redirect the output") if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-delete", "-fprint", "-fprintf", "-fls", "-fprint0"}
	some i, w in input.command.operands
	i < 3
	not w.place in {"workspace", "tmp", "dynamic"}
}

deny contains lib.denial("find.write", "find -fprint writes a file", "redirect the output instead") if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-fprint", "-fprintf", "-fls", "-fprint0"}
}
