# What holds for every proposal on this repository. The default policy allows; what
# stands here may deny, ask a person and lower limits, and can allow nothing.
package fumehood.proposal

# METADATA
# title: A command gets ten minutes
# custom:
#   rule: repo.limits
limits contains {"rule": "repo.limits", "wall_ms": 600000}

# METADATA
# title: Who wants more than 4 GiB of memory asks a person
# custom:
#   rule: repo.memory
ask contains {"rule": "repo.memory", "message": "it asks for more than 4 GiB of memory", "suggestion": "ask for 4 GiB, or let a maintainer approve it"} if {
	input.proposal.limits.memory_bytes > 4294967296
}
