# Go: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: The integration tests need services that the sandbox does not have
# custom:
#   rule: repo.go-integration
#   text_only: true
#   match: ["go test -tags integration ./...", "go test -tags=integration,slow ./...", "GOFLAGS=-tags=integration go test ./..."]
#   not_match: ["go test ./...", "go test integration"]
deny contains {
	"rule": "repo.go-integration",
	"message": "the integration tests need services that the sandbox does not have",
	"suggestion": "remove -tags integration",
} if {
	input.command.tool == "go"
	some option in input.command.options
	option.name == "-tags"
	"integration" in option.values
}
