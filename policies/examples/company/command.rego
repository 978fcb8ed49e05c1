# Rules that companies ask for: copy this file, and write your own names. It is an organization's
# policy (--organization), because it overrides rules of the default policy and allows commands that
# this does not know. docs/TUTORIAL.md goes through it rule by rule.
package fumehood.command

# METADATA
# title: Nothing of docker
# custom:
#   rule: acme.docker
#   match: [docker ps, podman run alpine]
#   not_match: [cat Dockerfile]
deny contains {
	"rule": "acme.docker",
	"message": "containers are not used here",
	"suggestion": "start the service with the configuration's services",
} if {
	input.command.program in {"docker", "podman", "nerdctl"}
}

# METADATA
# title: A person looks at a plan of terraform before it is made
# custom:
#   rule: judged.verb
#   owner: platform team
#   reason: reviewers need the plan
#   ticket: ACME-9
#   expires: 2027-03-31
#   digest: sha256:0884226b69b6
override contains {"rule": "judged.verb", "effect": "ask"} if terraform_plan

# METADATA
# title: terraform plan, and nothing else of terraform
# custom:
#   rule: acme.terraform
#   match: [terraform plan]
#   not_match: [terraform apply, terraform validate]
allow contains {"rule": "acme.terraform"} if terraform_plan

terraform_plan if {
	input.command.tool == "terraform"
	input.command.sub == "plan"
}

# METADATA
# title: A person looks at a package that the lock file does not have
# custom:
#   rule: code.package
#   owner: supply chain
#   reason: trying a package is a review, too
#   ticket: ACME-12
#   expires: 2027-03-31
#   digest: sha256:932d39d5acda
override contains {"rule": "code.package", "effect": "ask"} if {
	input.command.tool == "npm"
	input.command.sub in {"install", "i", "add"}
}

# METADATA
# title: Python's tests have 1 GiB
# custom: {rule: acme.pytest}
limits contains {"memory_bytes": 1073741824} if input.command.tool == "pytest"

# METADATA
# title: The old build may read its wrapper until it is replaced
# custom:
#   rule: acme.old-build
#   owner: build team
#   reason: the new build is ready in spring
#   ticket: ACME-20
#   expires: 2027-03-31
#   match: [oldbuild all]
#   not_match: [make all]
allow contains {"rule": "acme.old-build"} if input.command.program == "oldbuild"

# METADATA
# title: Benchmarks are refused from spring on
# custom:
#   rule: acme.bench
#   mode: observe
#   until: 2027-03-31
#   text_only: true
#   match: ["go test -bench=. ./..."]
#   not_match: ["go test ./..."]
deny contains {
	"rule": "acme.bench",
	"message": "benchmarks take the time of others",
	"suggestion": "run the tests without -bench",
} if {
	input.command.tool == "go"
	some word in input.command.argv
	startswith(word, "-bench")
}
