package fumehood.proposal

asks(origin, phase, entry) := {"proposal": {"origin": origin, "phase": phase, "network": [entry]}}

test_setup_reads_registries if {
	some g in network with input as asks("setup", "setup", "registry:npm")
	g.host == "registry:npm"
}

test_a_proposer_does_not if count(network) == 0 with input as asks("proposer", "setup", "registry:npm")

test_not_in_the_run_phase if count(network) == 0 with input as asks("setup", "run", "registry:npm")

test_no_other_host if count(network) == 0 with input as asks("setup", "setup", "npm.example")
