# Registries, read-only and only in the setup phase: what a plan's "registry:" entries
# need. Use this directory unchanged, or copy it, and pass it with the policies that may
# grant hosts.
package fumehood.proposal

# METADATA
# title: Registries may be used in the setup phase
network contains {"rule": "org.registries", "host": entry} if {
	input.proposal.phase == "setup"
	some entry in input.proposal.network
	entry in registries
}

registries := {
	"registry:go", "registry:npm", "registry:pypi", "registry:crates", "registry:maven", "registry:rubygems", "registry:apt", "registry:github-releases",
	"registry:gradle", "registry:nuget", "registry:packagist", "registry:hex", "registry:pub", "registry:jsr", "registry:conda", "registry:swift",
}
