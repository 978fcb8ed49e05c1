# A host for one repository: a plan must request the entry exactly as it is written here.
package fumehood.proposal

# METADATA
# title: Commands of acme/shop that use only curl reach the internal API, if no fork wrote them
network contains {"rule": "org.api", "host": "api.internal.example"} if {
	"api.internal.example" in input.proposal.network
	input.context.repository == "acme/shop"
	input.context.known
	not input.context.fork
	every program in input.proposal.programs {
		program == "curl"
	}
}
