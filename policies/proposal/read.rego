package fumehood.proposal

import data.fumehood.lib

# METADATA
# title: The environment must not be encoded
# custom:
#   rule: env.encoded
#   floor: true
#   severity: high
#   category: credentials
#   retry: never
#   match: ["printenv | base64", "env | base64 | tr -d '\\n'", "env | xxd -p", "env | gzip | base64"]
#   not_match: ["env | sort", "printenv PATH", "base64 x"]
deny contains lib.denial("env.encoded", sprintf("the environment is printed and %s encodes it", [encoder]), "print the variables that you need by name") if {
	some printer in {"printenv", "env", "set", "declare", "export"}
	printer in input.proposal.programs
	some encoder in {"base64", "base32", "basenc", "xxd", "od", "hexdump", "uuencode", "rev", "gzip", "openssl"}
	encoder in input.proposal.programs
}
