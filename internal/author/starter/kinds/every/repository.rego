# Rules for every proposal on this repository. The default policy allows; these rules may
# deny, ask a person and lower limits, and cannot allow anything.
package fumehood.proposal

# METADATA
# title: Commands may run for at most ten minutes
# custom:
#   rule: repo.limits
limits contains {"rule": "repo.limits", "wall_ms": 600000}

# METADATA
# title: More than 4 GiB of memory needs approval
# custom:
#   rule: repo.memory
ask contains {"rule": "repo.memory", "message": "it requests more than 4 GiB of memory", "suggestion": "request 4 GiB, or ask a maintainer to approve it"} if {
	input.proposal.limits.memory_bytes > 4294967296
}
