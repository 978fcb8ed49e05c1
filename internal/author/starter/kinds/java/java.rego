# Java and Kotlin: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: The integration tests need services that the sandbox does not have
# custom:
#   rule: repo.java-integration
#   text_only: true
#   match: ["./gradlew integrationTest", "mvn verify -P a,integration"]
#   not_match: ["./gradlew test", "mvn test"]
deny contains {
	"rule": "repo.java-integration",
	"message": "the integration tests need services that the sandbox does not have",
	"suggestion": "run the unit tests: ./gradlew test, mvn test",
} if {
	input.command.tool in {"gradle", "mvn"}
	"integration" in named
}

named contains "integration" if {
	some word in input.command.operands
	word.value == "integrationTest"
}

named contains value if {
	some option in input.command.options
	option.name == "--activate-profiles"
	some value in option.values
}
