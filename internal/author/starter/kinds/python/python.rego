# Python: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: The integration tests need services that the sandbox does not have
# custom:
#   rule: repo.python-integration
#   text_only: true
#   match: ["pytest -m integration", "python3 -m pytest -m 'integration and slow'"]
#   not_match: ["pytest -q tests", "pytest -m 'not integration'"]
deny contains {
	"rule": "repo.python-integration",
	"message": "the integration tests need services that the sandbox does not have",
	"suggestion": "remove -m integration",
} if {
	input.command.tool == "pytest"
	some option in input.command.options
	option.name == "-m"
	"integration" in option.values
	not "not" in option.values
}
