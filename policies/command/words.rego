# Options that the tables do not list. A word that is known only at run time, such as decoded
# text, is decided when its program starts.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Unknown options of tools that can run programs are denied
# custom:
#   rule: option.unknown
#   severity: medium
#   category: code
#   match: ["go build -evil ./...", "flake8 --frob x", "npx jest --frob", "rg --frobnicate x"]
#   not_match: [
#     "sort -rn x", "sort --frobnicate x", "sed --evil p x", "nm --frob a.o", "cat -n x", "go test -evil ./...", "./run.sh --evil", "curl --evil x"
#   ]
deny contains lib.denial(
	"option.unknown",
	sprintf("the policy does not know the option %s of %s, which may run another program", [name, read_tool]),
	sprintf("remove %s", [name]),
) if {
	some name in input.command.unknown
	input.command.starts != "none" # else the kernel refuses whatever the option would start
	input.command.program in lib.programs
}

# read_tool is the tool whose options were read, behind the one that starts it.
read_tool := input.command.program if {
	input.command.tool == input.command.program
} else := sprintf("%s %s", [input.command.program, input.command.tool])
