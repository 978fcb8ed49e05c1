# A stricter reading of snippets, to copy: what they can do needs a reason in the
# proposal, or a person. Named with --policy it adds to the shipped rules.
package fumehood.snippet

# METADATA
# title: A snippet speaks to no other machine unless a host was asked for
# custom:
#   rule: org.snippet-network
deny contains {"rule": "org.snippet-network", "message": sprintf("line %d of the snippet %s, and the proposal asks for none", [f.line, f.message]), "suggestion": "ask for the host in network, or leave it out"} if {
	count(input.proposal.network) == 0
	some f in input.snippet.findings
	f.code == "remote-host"
}

# METADATA
# title: Code that is not written in the snippet is a person's to judge
# custom:
#   rule: org.snippet-dynamic
ask contains {"rule": "org.snippet-dynamic", "message": sprintf("line %d of the snippet %s", [f.line, f.message]), "suggestion": "write the code itself"} if {
	some f in input.snippet.findings
	f.code in {"dynamic-code", "dynamic-attribute", "dynamic-text"}
}
