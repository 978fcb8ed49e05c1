# Commands run only in an image that the release workflow has signed: copy this file and write your own names.
# Who has signed is what verified the signature before the run and gives it with --context: see docs/policy/rules.md.
package fumehood.command

# METADATA
# title: Commands run only in a signed image
# custom:
#   rule: org.image
#   match: ["ls"]
deny contains {
	"rule": "org.image",
	"message": "the root file system is not an image of acme that its release workflow has signed",
	"suggestion": "run in registry.acme.example/ci, and give what cosign verify has printed with --context",
} if {
	not signed_image
}

signed_image if {
	input.context.image.name == "registry.acme.example/ci"
	"https://github.com/acme/images/.github/workflows/release.yml@refs/heads/main" in input.context.image.signers
}
