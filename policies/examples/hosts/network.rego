# Hosts of an organisation's own: copy it and write your own names. An entry is granted
# as it is asked for, letter by letter, so what is listed here is what a plan may say.
package fumehood.proposal

# METADATA
# title: The hosts that a pull request's commands may reach
network contains {"rule": "org.hosts", "host": entry} if {
	some entry in input.proposal.network
	entry in hosts[input.proposal.phase]
}

hosts := {
	"setup": {"files.example.com", "*.cdn.example.com", "git.corp.example:22"},
	"run": {"api.example.com", "192.0.2.7:5432"},
}
