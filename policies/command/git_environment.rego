# The sandbox configures git through environment variables, which override the repository's
# configuration. A command that removes them is denied here, and again when git starts.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: The sandbox's git configuration must not be removed
# custom:
#   rule: git.environment
#   match: [
#     "unset GIT_CONFIG_COUNT; git status", "env -u GIT_CONFIG_KEY_0 git log", "env --unset=GIT_CONFIG_COUNT git log",
#     "env -uGIT_CONFIG_COUNT git log", "env -i git status", "env - git status", "env -vi /usr/bin/git status",
#     "env -i PATH=/usr/bin sh -c 'git status'", "exec -c git status", "export -n GIT_CONFIG_COUNT; git status",
#     "declare +x GIT_CONFIG_COUNT; git status", "f() { local GIT_CONFIG_VALUE_0; git status; }; f"
#   ]
#   not_match: [
#     "env -i PATH=/usr/bin:/bin go version", "env -u FOO git status", "unset x", "env GIT_PAGER=cat git log", "env FOO=1 git grep -i x",
#     "export GIT_CONFIG_GLOBAL=/dev/null", "exec git status", "env -i cat .git-blame-ignore-revs"
#   ]
deny contains lib.denial(
	"git.environment",
	sprintf("%s must not remove the configuration that keeps git from running the repository's programs", [input.command.program]),
	"keep the GIT_CONFIG_* variables",
) if {
	input.command.program in {"unset", "export", "declare", "typeset", "local", "readonly"}
	some word in input.command.argv
	regex.match(`^GIT_CONFIG_(COUNT|KEY_|VALUE_)`, word)
}

deny contains lib.denial(
	"git.environment",
	sprintf("%s must not remove the configuration that keeps git from running the repository's programs", [input.command.program]),
	"keep the GIT_CONFIG_* variables",
) if {
	input.command.program == "env"
	some word in input.command.argv
	regex.match(`^(-[0iv]*u|--unset=)?GIT_CONFIG_(COUNT|KEY_|VALUE_)[^=]*$`, word)
}

deny contains lib.denial(
	"git.environment",
	sprintf("%s must not start git with an empty environment", [input.command.program]),
	"start git with its environment unchanged",
) if {
	clearing := {"env": `^(-|-[0v]*i[0ivuC]*.*|--ignore-environment)$`, "exec": `^-c$`}[input.command.program]
	some i, word in input.command.argv
	regex.match(clearing, word)
	some j, later in input.command.argv
	j > i
	regex.match(`(^|[^\w.-])git([^\w.-]|$)`, later)
}
