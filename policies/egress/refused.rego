package fumehood.egress

import data.fumehood.lib

# What is refused by a name of its own, so that who reads the report knows why. Most of
# it is also what no rule allows.

# METADATA
# title: Only what the command was granted
# custom:
#   rule: egress.host
#   match: [{kind: lookup, name: evil.example}, {name: evil.example}, {kind: request, protocol: http, port: 80, name: evil.example, method: GET, path: /}, {kind: lookup, name: x.api.example.com}]
#   not_match: [{}, {kind: lookup}, {port: 22}, {kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}, {name: a.example.org, grants: ["*.example.org"]}]
deny contains lib.denial("egress.host", sprintf("%s is none of the hosts that this command was granted", [input.name]), "reach only what was granted, or ask for this host in the proposal's network") if {
	input.registry == false
	input.named == false
	input.name != ""
}

# METADATA
# title: Addresses are reached by the names that stand for them
# custom:
#   rule: egress.address
#   match: [{name: "", address: 169.254.169.254, port: 80}, {name: "", address: 192.0.2.10}, {name: "", address: 10.0.0.1, port: 22, grants: ["10.0.0.1:23"]}]
#   not_match: [{}, {name: "", address: 192.0.2.7, grants: ["192.0.2.7"]}, {kind: lookup, name: ""}]
deny contains lib.denial("egress.address", sprintf("%s was not looked up here, and the command was not granted that address and port %d", [input.address, input.port]), "use the name of a granted host, and the sandbox's own resolver") if {
	input.name == ""
	input.exact == false
	input.kind in {"connect", "hello", "request"}
}

# METADATA
# title: A granted host is reached on its ports and in their protocols
# custom:
#   rule: egress.port
#   match: [{port: 22}, {port: 443, grants: ["api.example.com:8080"]}, {kind: request, protocol: http, method: GET, path: /}, {kind: hello, protocol: tls, port: 80, sni: api.example.com}]
#   not_match: [{}, {port: 80}, {port: 22, grants: ["api.example.com:22"]}, {name: evil.example, port: 22}, {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm", "npm.example"]}]
deny contains lib.denial("egress.port", sprintf("%s is granted, but not port %d with %s", [input.name, input.port, input.protocol]), sprintf("use TLS on 443 or HTTP on 80, or ask for \"%s:%d\"", [input.name, input.port])) if {
	input.registry == false
	input.named == true
	unreachable
}

unreachable if input.fits == false

unreachable if {
	input.kind in {"hello", "request"}
	not spoken
}

# METADATA
# title: No long names below a suffix
# description: Whoever answers for the suffix reads the name, so a long one carries data out. An exact entry has no such bound.
# custom:
#   rule: egress.long-name
#   match: [{kind: lookup, name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.example.org, grants: ["*.example.org"]}, {kind: lookup, name: a.b.c.d.example.org, grants: ["*.example.org"]}, {name: a.b.c.d.example.org, grants: ["*.example.org"]}]
#   not_match: [{kind: lookup, name: a.b.c.example.org, grants: ["*.example.org"]}, {kind: lookup, name: a.b.c.d.example.org, grants: ["*.example.org", "a.b.c.d.example.org"]}, {kind: lookup}]
deny contains lib.denial("egress.long-name", sprintf("%s says more below a granted suffix than names of hosts do", [input.name]), "ask for the host by its whole name") if {
	input.exact == false
	some n in input.naming
	not short(n.below)
}

# METADATA
# title: Nobody is given a cloud's credentials, whatever name they go by
# custom:
#   rule: egress.metadata
#   match: [{kind: lookup, name: metadata.google.internal, grants: ["*.google.internal"]}, {kind: lookup, name: instance-data.ec2.internal, grants: ["*.ec2.internal"]}, {name: metadata.azure.com, grants: ["*.azure.com"]}]
#   not_match: [{kind: lookup, name: metadata.google.internal, grants: ["metadata.google.internal"]}, {kind: lookup, name: metadata.example.org, grants: ["*.example.org"]}, {kind: lookup}]
deny contains lib.denial("egress.metadata", sprintf("%s is where clouds hand out credentials", [input.name]), "leave it out") if {
	input.exact == false
	input.name in lib.metadata_names
}

# METADATA
# title: Names of this machine and of the network that it is in
# custom:
#   rule: egress.local
#   match: [{kind: lookup, name: localhost}, {kind: lookup, name: x.localhost, grants: ["*.x.localhost"]}, {kind: lookup, name: printer.corp.local, grants: ["*.corp.local"]}, {name: db.corp.internal, grants: ["*.corp.internal"]}, {kind: lookup, name: router.home.arpa, grants: ["*.home.arpa"]}]
#   not_match: [{kind: lookup, name: git.corp.internal, grants: ["git.corp.internal"]}, {kind: lookup, name: notlocal.example.org, grants: ["*.example.org"]}, {kind: lookup, name: npm.corp.internal, registries: [npm], grants: ["registry:npm"]}]
deny contains lib.denial("egress.local", sprintf("%s is a name of this machine or of the network that it is in", [input.name]), "have the host granted by its whole name") if {
	input.registry == false
	input.exact == false
	regex.match(`(^|\.)(localhost|localdomain|local|internal|intranet|lan|home\.arpa|corp|private)$`, input.name)
}

# METADATA
# title: No resolver but the gateway's
# description: Their names, and the path that all of them answer on. A wildcard never grants one.
# custom:
#   rule: egress.resolver
#   match: [{kind: lookup, name: dns.google}, {name: mozilla.cloudflare-dns.com, grants: ["*.cloudflare-dns.com"]}, {kind: request, protocol: https, method: POST, path: /dns-query, name: a.example.org, grants: ["*.example.org"]}, {kind: lookup, name: use-application-dns.net}]
#   not_match: [{kind: lookup, name: dns.google, grants: [dns.google]}, {kind: lookup, name: dns.example.org, grants: ["*.example.org"]}, {kind: request, protocol: https, method: GET, path: /dns-query-docs}]
deny contains lib.denial("egress.resolver", sprintf("%s answers lookups that nobody here would see", [input.name]), "use the sandbox's own resolver") if {
	input.registry == false
	input.exact == false
	resolver
}

resolver if input.name in resolvers

resolver if regex.match(`\.(dns\.nextdns\.io|cloudflare-dns\.com|cloudflare-gateway\.com|dns\.controld\.com|quad9\.net|opendns\.com|adguard-dns\.com)$`, input.name)

resolver if input.path in {"/dns-query", "/resolve"}

resolvers := {
	"dns.google", "dns.google.com", "dns64.dns.google", "8888.google", "cloudflare-dns.com", "one.one.one.one", "1dot1dot1dot1.cloudflare-dns.com", "dns.quad9.net", "dns9.quad9.net", "dns10.quad9.net", "dns11.quad9.net", "doh.opendns.com", "dns.opendns.com", "doh.familyshield.opendns.com", "dns.adguard.com", "dns.adguard-dns.com", "doh.cleanbrowsing.org", "dns.nextdns.io",
	"doh.dns.sb", "dns.sb", "doh.mullvad.net", "dns.mullvad.net", "freedns.controld.com", "doh.libredns.gr", "doh.li", "dns.digitale-gesellschaft.ch", "dns.switch.ch", "doh.xfinity.com", "doh.applied-privacy.net", "dns.alidns.com", "doh.pub", "doh.360.cn", "dns.twnic.tw", "public.dns.iij.jp", "doh.ffmuc.net", "ordns.he.net", "odoh.cloudflare-dns.com", "dns0.eu", "zero.dns0.eu", "dns.njal.la", "use-application-dns.net", "doh.dns.apple.com", "mask.icloud.com", "mask-h2.icloud.com",
}
