package fumehood.egress

import data.fumehood.lib

# Denials with a rule of their own, so that readers of the report know why. Most of them
# would be denied anyway, since no rule allows them.

# METADATA
# title: Only granted hosts
# custom:
#   rule: egress.host
#   severity: medium
#   category: network
#   match: [
#     {kind: lookup, name: evil.example}, {name: evil.example}, {kind: request, protocol: http, port: 80, name: evil.example, method: GET, path: /},
#     {kind: lookup, name: x.api.example.com}
#   ]
#   not_match: [
#     {}, {kind: lookup}, {port: 22}, {kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]},
#     {name: a.example.org, grants: ["*.example.org"]}
#   ]
deny contains lib.denial(
	"egress.host",
	sprintf("%s was not granted to this command", [input.name]),
	host_instead,
) if {
	input.registry == false
	input.named == false
	input.name != ""
}

default host_instead := "use only granted hosts, or request this one in the proposal's network"

# Set-up reads some registries only where the configuration names them.
host_instead := sprintf("if this is a download that set-up needs, list `%s` in `registries` of `.github/fumehood.yml`", [concat(", ", names)]) if {
	input.phase == "setup"
	names := {row.name |
		some row in data.registries
		row.setup == "named"
		some url in row.public
		startswith(url, sprintf("https://%s/", [input.name]))
	}
	count(names) > 0
}

# METADATA
# title: Addresses must have been looked up by name
# custom:
#   rule: egress.address
#   severity: medium
#   category: network
#   match: [{name: "", address: 169.254.169.254, port: 80}, {name: "", address: 192.0.2.10}, {name: "", address: 10.0.0.1, port: 22, grants: ["10.0.0.1:23"]}]
#   not_match: [{}, {name: "", address: 192.0.2.7, grants: ["192.0.2.7"]}, {kind: lookup, name: ""}]
deny contains lib.denial(
	"egress.address",
	sprintf("%s was not looked up here, and address and port %d were not granted to this command", [input.address, input.port]),
	"use the name of a granted host, and the sandbox's resolver",
) if {
	input.name == ""
	input.exact == false
	input.kind in {"connect", "hello", "request"}
}

# METADATA
# title: Granted hosts are reached only on their ports and with the ports' protocols
# custom:
#   rule: egress.port
#   severity: medium
#   category: network
#   match: [
#     {port: 22}, {port: 443, grants: ["api.example.com:8080"]}, {kind: request, protocol: http, method: GET, path: /},
#     {kind: hello, protocol: tls, port: 80, sni: api.example.com}
#   ]
#   not_match: [
#     {}, {port: 80}, {port: 22, grants: ["api.example.com:22"]}, {name: evil.example, port: 22},
#     {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm", "npm.example"]}
#   ]
deny contains lib.denial(
	"egress.port",
	sprintf("%s is granted, but not port %d with %s", [input.name, input.port, input.protocol]),
	sprintf("use TLS on 443 or HTTP on 80, or request \"%s:%d\"", [input.name, input.port]),
) if {
	input.registry == false
	input.named == true
	unreachable
}

unreachable if input.fits == false

unreachable if {
	input.kind in {"hello", "request"}
	not usual_protocol
}

# METADATA
# title: Long names below a granted suffix are denied
# description: The suffix's name server sees every lookup, so a long name can carry data out. An exact entry has no such limit.
# custom:
#   rule: egress.long-name
#   severity: medium
#   category: network
#   match: [
#     {kind: lookup, name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.example.org, grants: ["*.example.org"]},
#     {kind: lookup, name: a.b.c.d.example.org, grants: ["*.example.org"]}, {name: a.b.c.d.example.org, grants: ["*.example.org"]}
#   ]
#   not_match: [
#     {kind: lookup, name: a.b.c.example.org, grants: ["*.example.org"]},
#     {kind: lookup, name: a.b.c.d.example.org, grants: ["*.example.org", "a.b.c.d.example.org"]}, {kind: lookup}
#   ]
deny contains lib.denial(
	"egress.long-name",
	sprintf("%s is longer below the granted suffix than names of hosts are", [input.name]),
	"request the host by its full name",
) if {
	input.exact == false
	some n in input.naming
	not short(n.below)
}

# METADATA
# title: Cloud metadata services are denied, under any name
# custom:
#   rule: egress.metadata
#   severity: critical
#   category: credentials
#   match: [
#     {kind: lookup, name: metadata.google.internal, grants: ["*.google.internal"]},
#     {kind: lookup, name: instance-data.ec2.internal, grants: ["*.ec2.internal"]}, {name: metadata.azure.com, grants: ["*.azure.com"]}
#   ]
#   not_match: [
#     {kind: lookup, name: metadata.google.internal, grants: ["metadata.google.internal"]},
#     {kind: lookup, name: metadata.example.org, grants: ["*.example.org"]}, {kind: lookup}
#   ]
deny contains lib.denial("egress.metadata", sprintf("%s is a cloud metadata service, which hands out credentials", [input.name]), "remove it") if {
	input.exact == false
	input.name in lib.metadata_names
}

# METADATA
# title: Local names are denied
# custom:
#   rule: egress.local
#   severity: medium
#   category: network
#   match: [
#     {kind: lookup, name: localhost}, {kind: lookup, name: x.localhost, grants: ["*.x.localhost"]},
#     {kind: lookup, name: printer.corp.local, grants: ["*.corp.local"]}, {name: db.corp.internal, grants: ["*.corp.internal"]},
#     {kind: lookup, name: router.home.arpa, grants: ["*.home.arpa"]}
#   ]
#   not_match: [
#     {kind: lookup, name: git.corp.internal, grants: ["git.corp.internal"]}, {kind: lookup, name: notlocal.example.org, grants: ["*.example.org"]},
#     {kind: lookup, name: npm.corp.internal, registries: [npm], grants: ["registry:npm"]}
#   ]
deny contains lib.denial("egress.local", sprintf("%s is a name of this machine or of its network", [input.name]), "request the host by its full name") if {
	input.registry == false
	input.exact == false
	regex.match(`(^|\.)(localhost|localdomain|local|internal|intranet|lan|home\.arpa|corp|private)$`, input.name)
}

# METADATA
# title: Other DNS resolvers are denied
# description: They are recognized by name, and by the path on which all of them answer. A wildcard never grants one.
# custom:
#   rule: egress.resolver
#   severity: medium
#   category: network
#   match: [
#     {kind: lookup, name: dns.google}, {name: mozilla.cloudflare-dns.com, grants: ["*.cloudflare-dns.com"]},
#     {kind: request, protocol: https, method: POST, path: /dns-query, name: a.example.org, grants: ["*.example.org"]},
#     {kind: lookup, name: use-application-dns.net}
#   ]
#   not_match: [
#     {kind: lookup, name: dns.google, grants: [dns.google]}, {kind: lookup, name: dns.example.org, grants: ["*.example.org"]},
#     {kind: request, protocol: https, method: GET, path: /dns-query-docs}
#   ]
deny contains lib.denial("egress.resolver", sprintf("%s is a DNS resolver; its lookups would not be recorded", [input.name]), "use the sandbox's resolver") if {
	input.registry == false
	input.exact == false
	resolver
}

resolver if input.name in resolvers

resolver if regex.match(resolver_suffix, input.name)

resolver_suffix := concat("", [
	`\.(dns\.nextdns\.io|cloudflare-dns\.com|cloudflare-gateway\.com|dns\.controld\.com|quad9\.net`,
	`|opendns\.com|adguard-dns\.com)$`,
])

resolver if input.path in {"/dns-query", "/resolve"}

resolvers := {
	"dns.google", "dns.google.com", "dns64.dns.google", "8888.google", "cloudflare-dns.com", "one.one.one.one", "1dot1dot1dot1.cloudflare-dns.com",
	"dns.quad9.net", "dns9.quad9.net", "dns10.quad9.net", "dns11.quad9.net", "doh.opendns.com", "dns.opendns.com", "doh.familyshield.opendns.com",
	"dns.adguard.com", "dns.adguard-dns.com", "doh.cleanbrowsing.org", "dns.nextdns.io",
	"doh.dns.sb", "dns.sb", "doh.mullvad.net", "dns.mullvad.net", "freedns.controld.com", "doh.libredns.gr", "doh.li", "dns.digitale-gesellschaft.ch",
	"dns.switch.ch", "doh.xfinity.com", "doh.applied-privacy.net", "dns.alidns.com", "doh.pub", "doh.360.cn", "dns.twnic.tw", "public.dns.iij.jp",
	"doh.ffmuc.net", "ordns.he.net", "odoh.cloudflare-dns.com", "dns0.eu", "zero.dns0.eu", "dns.njal.la", "use-application-dns.net", "doh.dns.apple.com",
	"mask.icloud.com", "mask-h2.icloud.com",
}
