# find may search. The command that -exec runs is checked separately. find may remove files
# in the workspace and /tmp only.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: find changes files in the workspace and /tmp only
# custom:
#   rule: find.write
#   severity: medium
#   category: files
#   match: ["find / -delete", "find /etc -name x -delete", "find . -fprint /etc/x", "find .git -delete"]
#   not_match: ["find . -name '*.tmp' -delete", "find . -type f -name '*.go'"]
deny contains lib.denial(
	"find.write",
	"find -delete and -fprint are allowed in the workspace and /tmp only",
	"search below a directory in the workspace, and redirect the output",
) if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-delete", "-fprint", "-fprintf", "-fls", "-fprint0"}
	some i, w in input.command.operands
	i < 3
	not w.place in {"workspace", "tmp", "dynamic"}
}

deny contains lib.denial("find.write", "find -fprint is not allowed: it writes a file", "redirect the output instead") if {
	input.command.program == "find"
	some word in input.command.argv
	word in {"-fprint", "-fprintf", "-fls", "-fprint0"}
}
