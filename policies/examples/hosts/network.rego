# An organization's own hosts: copy this file and write your own names. A plan must request
# an entry exactly as it is written here.
package fumehood.proposal

# METADATA
# title: Hosts that a pull request's commands may reach
network contains {"rule": "org.hosts", "host": entry} if {
	some entry in input.proposal.network
	entry in hosts[input.proposal.phase]
}

hosts := {
	"setup": {"files.example.com", "*.cdn.example.com", "git.corp.example:22"},
	"run": {"api.example.com", "192.0.2.7:5432"},
}
