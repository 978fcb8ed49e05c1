# Stricter rules for snippets, to copy: what a snippet can do needs a request in the
# proposal, or a person's approval. With --policy this adds to the shipped rules.
package fumehood.snippet

# METADATA
# title: Snippets must not reach hosts unless the proposal requests some
# custom:
#   rule: org.snippet-network
deny contains {
	"rule": "org.snippet-network",
	"message": sprintf("line %d of the snippet %s, and the proposal requests no host", [f.line, f.message]),
	"suggestion": "request the host in network, or remove it",
} if {
	count(input.proposal.network) == 0
	some f in input.snippet.findings
	f.code == "remote-host"
}

# METADATA
# title: Dynamic code in a snippet needs a person's approval
# custom:
#   rule: org.snippet-dynamic
ask contains {
	"rule": "org.snippet-dynamic",
	"message": sprintf("line %d of the snippet %s", [f.line, f.message]),
	"suggestion": "write the code literally",
} if {
	some f in input.snippet.findings
	f.code in {"dynamic-code", "dynamic-attribute", "dynamic-text"}
}
