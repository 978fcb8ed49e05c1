# jq and yq may query documents, and yq may edit those in the workspace. Their filters may read
# the environment, as printenv and env may: it has no credential, and a text that asks for one by
# its name is denied (secrets.rego).
package fumehood.command

import data.fumehood.lib

# METADATA
# title: yq edits files in the workspace and /tmp only
# custom:
#   rule: yq.place
#   severity: medium
#   category: files
#   match: ["yq -i '.on = 1' .github/workflows/ci.yml", "yq --inplace .a=1 /etc/x.yml", "yq -i .a=1 .git/config"]
#   not_match: ["yq -i .a=1 config.yml", "yq .on .github/workflows/ci.yml"]
deny contains lib.denial("yq.place", sprintf("yq must not change %q", [w.value]), "change files in the workspace or /tmp") if {
	input.command.program == "yq"
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*i|^--in`, word)
	some w in input.command.operands
	w.place in {"control", "git", "outside", "secret", "home"}
}
