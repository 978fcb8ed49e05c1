# jq and yq may query documents, and yq may edit those in the workspace. Their filters must
# not read the environment.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: yq edits files in the workspace and /tmp only
# custom:
#   rule: yq.place
#   match: ["yq -i '.on = 1' .github/workflows/ci.yml", "yq --inplace .a=1 /etc/x.yml", "yq -i .a=1 .git/config"]
#   not_match: ["yq -i .a=1 config.yml", "yq .on .github/workflows/ci.yml"]
deny contains lib.denial("yq.place", sprintf("yq must not change %q", [w.value]), "change files in the workspace or /tmp") if {
	input.command.program == "yq"
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*i|^--in`, word)
	some w in input.command.operands
	w.place in {"control", "git", "outside", "secret", "home"}
}

deny contains lib.denial("read.credential", "a filter must not read the environment", filter_instead) if {
	input.command.program in {"jq", "yq", "gojq"}
	some word in input.command.argv
	regex.match(jq_environment, word)
}

default filter_instead := "write the value in the filter"

filter_instead := "give the filter the value that it needs: `jq -n --arg x 1 '$x'`" if input.command.program == "jq"

jq_environment := concat("", [
	`\$(ENV|__prog_args)\b|(^|[^.\w])env(\.|\[|\()|\bstrenv\(|\benvsubst\b|(^|[|( ,])env($|[|) ,])`,
	`|\bload(_\w+)?\(|\binput_filename\b.*system|\bget_search_list\b`,
])
