# Options that the tables do not list, and decoded text in words. A word that is known only
# at run time is decided when its program starts.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Unknown options of tools that can run programs are denied
# custom:
#   rule: option.unknown
#   match: ["sort --frobnicate x", "sed --evil x", "go build -evil ./...", "nm --frob a.o", "flake8 --frob x", "npx jest --frob"]
#   not_match: ["sort -rn x", "cat -n x", "go test -evil ./...", "./run.sh --evil", "curl --evil x"]
deny contains lib.denial(
	"option.unknown",
	sprintf("the policy does not know %s's option %s", [input.command.program, name]),
	"use only options that the policy lists in options.txt",
) if {
	some name in input.command.unknown
	not input.command.inert # it can start nothing, whatever the option
	input.command.program in lib.programs
}

# METADATA
# title: Decoded text must not become part of a command
# custom:
#   rule: text.decoded
#   match: ["cat \"$(echo L2V0Yw== | base64 -d)\"", "ls $(base64 --decode x)", "cat $(xxd -r -p <<< 2f)", "cat \"$(printf 2f | xxd -r -p)\"", "rm $(rev <<< x)"]
#   not_match: ["base64 -d x > y", "echo $(base64 x)", "base64 -d x | head"]
deny contains lib.denial("text.decoded", sprintf("%s decodes text that becomes part of a command", [input.command.program]), "write the text literally") if {
	input.command.program in {"base64", "base32", "basenc", "xxd", "rev", "rot13", "openssl", "uudecode", "gunzip", "zcat", "iconv"}
	"substitution" in input.command.inside
	decodes
}

decodes if input.command.program in {"rev", "rot13", "openssl", "uudecode", "gunzip", "zcat", "iconv"}

decodes if {
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*[dDr]|^--d|^--reverse`, word)
}
