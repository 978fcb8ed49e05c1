# Registries, read only and during set-up alone: what a plan's "registry:" entries need.
# Use this folder as it is, or copy it, and name it among the policies that may grant
# hosts.
package fumehood.proposal

# METADATA
# title: Packages are fetched during set-up
network contains {"rule": "org.registries", "host": entry} if {
	input.proposal.phase == "setup"
	some entry in input.proposal.network
	entry in registries
}

registries := {
	"registry:go", "registry:npm", "registry:pypi", "registry:crates", "registry:maven", "registry:rubygems", "registry:apt", "registry:github-releases",
}
