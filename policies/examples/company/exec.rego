# The same rules for every program that starts, however it came to start.
package fumehood.exec

deny contains {
	"rule": "acme.docker",
	"message": "containers are not used here",
	"suggestion": "start the service with the configuration's services",
} if {
	input.name in {"docker", "podman", "nerdctl"}
}

# METADATA
# title: Of node_modules/.bin, only these
# custom: {rule: acme.bin}
deny contains {
	"rule": "acme.bin",
	"message": "this program of node_modules/.bin is not listed",
	"suggestion": "ask the owners of the policy to list it",
} if {
	contains(input.asked, "/node_modules/.bin/")
	not input.loaded
	name := split(input.asked, "/")[count(split(input.asked, "/")) - 1]
	not name in {"eslint", "jest", "prettier", "tsc"}
}
