package fumehood.proposal

# METADATA
# title: Set-up may read package registries
# description: >-
#   Only the set-up that the maintainer configured or fumehood detected, and only in its phase. The gateway lets it read, not write.
#   The release assets of GitHub are requested only if the configuration names them.
# custom: {rule: setup.registries}
network contains {"rule": "setup.registries", "host": entry} if {
	input.proposal.origin == "setup"
	input.proposal.phase == "setup"
	some entry in input.proposal.network
	entry in setup_registries
}

setup_registries contains concat(":", ["registry", row.name]) if {
	some row in data.registries
	row.setup in {"found", "named"}
}
