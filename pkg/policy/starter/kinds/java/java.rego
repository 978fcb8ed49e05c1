# Java and Kotlin: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: The integration tests need services that the sandbox does not have
# custom:
#   rule: repo.java-integration
#   match: ["./gradlew integrationTest", "mvn verify -Pintegration"]
#   not_match: ["./gradlew test", "mvn test"]
deny contains {"rule": "repo.java-integration", "message": "the integration tests need services that the sandbox does not have", "suggestion": "run the unit tests: ./gradlew test, mvn test"} if {
	input.command.program in {"gradlew", "gradle", "mvnw", "mvn"}
	some word in input.command.argv
	word in {"integrationTest", "-Pintegration"}
}
