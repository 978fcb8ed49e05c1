# Python: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: The integration tests need services that the sandbox does not have
# custom:
#   rule: repo.python-integration
#   match: ["pytest -m integration", "python3 -m pytest -m integration tests"]
#   not_match: ["pytest -q tests", "pytest -k integration"]
deny contains {"rule": "repo.python-integration", "message": "the integration tests need services that the sandbox does not have", "suggestion": "remove -m integration"} if {
	input.command.program in {"pytest", "python3"}
	some i, word in input.command.argv
	word == "-m"
	input.command.argv[i + 1] == "integration"
}
