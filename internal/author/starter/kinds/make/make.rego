# make: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: Targets that release are for maintainers
# custom:
#   rule: repo.make-release
#   text_only: true
#   match: ["make release", "make -j2 all deploy"]
#   not_match: ["make test", "make -C release test"]
deny contains {"rule": "repo.make-release", "message": "targets that release are for maintainers", "suggestion": "make the target that builds or tests"} if {
	input.command.program == "make"
	some word in input.command.operands
	word.value in {"release", "deploy", "publish"}
}
