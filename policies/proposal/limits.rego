package fumehood.proposal

import data.fumehood.lib

usual := {
	"wall_ms": 7200000, "cpus": 4, "memory_bytes": 4294967296, "pids": 1024,
	"disk_bytes": 8589934592, "files": 4096, "output_bytes": 67108864,
}

maximums := {
	"wall_ms": 7200000, "cpus": 64, "memory_bytes": 68719476736, "pids": 8192,
	"disk_bytes": 68719476736, "files": 65536, "output_bytes": 17179869184,
}

limits contains usual if not input.proposal.asks

limits contains {name: granted(name) | some name, _ in usual} if input.proposal.asks

granted(name) := usual[name] if input.proposal.limits[name] == 0

granted(name) := input.proposal.limits[name] if input.proposal.limits[name] > 0

# METADATA
# title: Limits above the maximum are denied
# custom: {rule: limits.too-much, severity: low, category: limits, floor: true}
deny contains lib.denial(
	"limits.too-much",
	sprintf("%s %v exceeds the maximum of %v", [name, input.proposal.limits[name], maximum]),
	sprintf("request %s of at most %v", [name, maximum]),
) if {
	input.proposal.asks
	some name, maximum in maximums
	input.proposal.limits[name] > maximum
}
