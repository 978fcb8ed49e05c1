package fumehood.egress

# Every step of a connection is decided here: a lookup of a name, a connection to an
# address, a TLS hello, a request. A command may reach the entries of its grant: an exact
# name or "*.example.com" for the names below it, each with or without a port; an address,
# with or without a port; or a registry, whose hosts come from the machine's settings.
#
# These rules grant no host. A policy grants hosts in fumehood.proposal; see
# policies/examples.
#
# The gateway has compared the step with the grant before rules see it. They rest on these
# facts, and need not read names or addresses themselves:
#
#   input.name      the name that the command looked up for this address; "" for an address
#                   that it did not look up. The gateway keeps the answers that it gave, so a
#                   command cannot claim a name
#   input.naming    the entries of the grant that name the host, whatever the port. An entry
#                   that is not valid names nothing. Of each: kind is name, suffix or address;
#                   below is the part of the name before a suffix; fits says that the entry
#                   includes the port: its own, or 443 and 80 if it names none. A lookup has
#                   no port and fits every entry
#   input.named     there is such an entry
#   input.exact     one of them that fits is not a suffix: the host itself was granted
#   input.registry  the host belongs to a granted registry; registry.rego decides about it
#
# Whatever rules say, the gateway refuses datagrams, lookups of other types than addresses, a
# TLS hello for another name than the one looked up, and addresses of this machine.

# METADATA
# title: Granted names may be looked up
# description: The port of an entry does not matter for lookups. An entry for a suffix does not include the suffix itself.
# custom:
#   rule: egress.lookup
#   match: [
#     {kind: lookup}, {kind: lookup, type: AAAA}, {kind: lookup, name: a.example.org, grants: ["*.example.org"]},
#     {kind: lookup, grants: ["api.example.com:8080"]}, {kind: lookup, phase: setup}
#   ]
#   not_match: [
#     {kind: lookup, name: evil.example}, {kind: lookup, name: example.org, grants: ["*.example.org"]},
#     {kind: lookup, name: evilexample.org, grants: ["*.example.org"]}, {kind: lookup, name: x.api.example.com}, {kind: lookup, grants: []},
#     {kind: lookup, grants: ["registry:npm"]}, {kind: connect}, {kind: ""}
#   ]
allow contains {"rule": "egress.lookup"} if {
	input.kind == "lookup"
	granted
}

# METADATA
# title: Connections to granted hosts, on 443 and 80 or on the granted port
# custom:
#   rule: egress.connect
#   match: [
#     {port: 443}, {port: 80}, {port: 8080, grants: ["api.example.com:8080"]}, {name: a.b.example.org, grants: ["*.example.org"]},
#     {name: "", address: 192.0.2.7, grants: ["192.0.2.7"]}, {name: "", address: 192.0.2.7, port: 5432, grants: ["192.0.2.7:5432"]},
#     {name: "", address: "2001:db8::7", grants: ["[2001:db8::7]:443"]}
#   ]
#   not_match: [
#     {port: 22}, {port: 443, grants: ["api.example.com:8080"]}, {name: "", address: 192.0.2.10},
#     {name: "", address: 192.0.2.8, grants: ["192.0.2.7"]}, {name: "", address: 192.0.2.7, port: 22, grants: ["192.0.2.7"]},
#     {address: 192.0.2.7, name: evil.example, grants: ["192.0.2.7"]}, {grants: []}, {name: ""}
#   ]
allow contains {"rule": "egress.connect"} if {
	input.kind == "connect"
	granted
}

# METADATA
# title: TLS with granted hosts
# description: Whatever the rules say, the hello must be for the name that was looked up.
# custom:
#   rule: egress.hello
#   match: [{kind: hello, protocol: tls, sni: api.example.com}, {kind: hello, protocol: tls, name: "", sni: "", address: 192.0.2.7, grants: ["192.0.2.7"]}]
#   not_match: [{kind: hello, protocol: tls, name: evil.example, sni: evil.example}, {kind: hello, protocol: tls, port: 80, sni: api.example.com}]
allow contains {"rule": "egress.hello"} if {
	input.kind == "hello"
	granted
	usual_protocol
}

# METADATA
# title: HTTP on 80, and intercepted HTTPS on 443, with granted hosts
# custom:
#   rule: egress.request
#   match: [
#     {kind: request, protocol: http, port: 80, method: GET, path: /}, {kind: request, protocol: https, method: POST, path: /x, size: 10},
#     {kind: request, protocol: https, method: GET, path: /, port: 8443, grants: ["api.example.com:8443"]}
#   ]
#   not_match: [
#     {kind: request, protocol: http, method: GET, path: /}, {kind: request, protocol: https, port: 80, method: GET, path: /},
#     {kind: request, protocol: https, method: GET, path: /, name: evil.example}
#   ]
allow contains {"rule": "egress.request"} if {
	input.kind == "request"
	granted
	usual_protocol
}

# granted is true for a host that was granted itself, and for one below a granted suffix
# whose name is short enough. It says nothing about the protocol.
granted if input.exact == true

granted if {
	input.exact == false
	some n in input.naming
	n.fits
	short(n.below)
}

# usual_protocol is true if the protocol is the port's: 443 is always TLS, and 80 always HTTP.
# On another port, which only an entry with this port grants, any protocol may be.
usual_protocol if not input.port in {443, 80}

usual_protocol if {
	input.port == 443
	input.protocol in {"tls", "https"}
}

usual_protocol if {
	input.port == 80
	input.protocol == "http"
}

# short limits the length of a name below a suffix. The suffix's name server sees every
# lookup, so long names can carry data out; names of hosts are shorter.
short(below) if {
	count(below) <= 48
	strings.count(below, ".") <= 2
}

# METADATA
# title: Any protocol is allowed on ports that the grant names
# description: Except on 443, which is always TLS, and on 80, which is always HTTP.
# custom:
#   rule: egress.raw
#   match: [
#     {port: 22, grants: ["api.example.com:22"]}, {name: "", address: 192.0.2.7, port: 5432, grants: ["192.0.2.7:5432"]},
#     {name: a.example.org, port: 22, grants: ["*.example.org:22"]}
#   ]
#   not_match: [
#     {port: 443, grants: ["api.example.com:443"]}, {port: 80, grants: ["api.example.com:80"]}, {port: 443},
#     {port: 4873, registries: [npm], grants: ["registry:npm"]}
#   ]
raw contains {"rule": "egress.raw"} if {
	input.kind == "connect"
	not input.port in {443, 80}
	granted
}

# METADATA
# title: Granted addresses may be private
# description: Loopback, link-local, metadata and the host's own addresses are never reachable, whatever the policy says.
# custom:
#   rule: egress.private-address
#   match: [{name: "", address: 10.0.0.7, port: 5432, grants: ["10.0.0.7:5432"]}]
#   not_match: [{}, {name: "", address: 10.0.0.8, grants: ["10.0.0.7"]}, {address: 10.0.0.7, grants: ["10.0.0.7", "api.example.com"]}]
private contains {"rule": "egress.private-address"} if {
	input.kind == "connect"
	input.name == ""
	input.exact == true
}

# METADATA
# title: Requests to granted hosts are searched for secrets, where they can be read
# custom:
#   rule: egress.filter
#   match: [{}, {kind: request, protocol: http, port: 80, method: POST, path: /, size: 10}]
#   not_match: [{registries: [npm], grants: ["registry:npm"]}, {kind: lookup}]
filter contains {"rule": "egress.filter"} if {
	input.registry == false
	input.kind in {"connect", "request"}
}

# METADATA
# title: The number of bytes sent to a host in a run is limited
# custom:
#   rule: egress.budget
#   match: [{}, {kind: request, protocol: https, method: GET, path: /}]
#   not_match: [{kind: lookup}]
budget contains {"rule": "egress.budget", "bytes": 67108864} if input.kind in {"connect", "hello", "request"}
