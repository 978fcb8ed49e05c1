package fumehood.egress

import data.fumehood.lib

# A registry is read and never written to. Its hosts come from the settings of the
# machine's tools, so they may be a company's mirror on a private address. Each request
# to a registry is intercepted; unencrypted streams to it are not possible.

# METADATA
# title: Hosts of a granted registry may be looked up and connected to
# custom:
#   rule: egress.registry
#   match: [
#     {kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]},
#     {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm"]}
#   ]
#   not_match: [
#     {name: npm.example, grants: ["registry:npm"]},
#     {kind: hello, protocol: tls, name: npm.example, sni: npm.example, registries: [npm], grants: ["registry:npm"]}
#   ]
allow contains {"rule": "egress.registry"} if {
	input.registry == true
	input.kind in {"lookup", "connect"}
}

# METADATA
# title: A granted registry may be read
# custom:
#   rule: egress.registry-read
#   match: [
#     {kind: request, protocol: https, method: GET, path: /left-pad, registries: [npm]},
#     {kind: request, protocol: http, port: 80, method: HEAD, path: /dists/stable/InRelease, registries: [apt]},
#     {kind: request, protocol: https, method: GET, path: /cli/cli/releases/download/v2.0.0/x.tar.gz, registries: [github-releases]},
#     {kind: request, protocol: https, method: GET, path: /github-production-release-asset/1/2, registries: [github-releases]}
#   ]
#   not_match: [
#     {kind: request, protocol: https, method: POST, path: /left-pad, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /x},
#     {kind: request, protocol: https, method: GET, path: /user/somegist, registries: [github-releases]},
#     {kind: request, protocol: https, method: GET, path: /search, registries: [github-releases]},
#     {kind: request, protocol: https, method: get, path: /x, registries: [npm]}
#   ]
allow contains {"rule": "egress.registry-read"} if {
	input.kind == "request"
	input.registry == true
	input.method in {"GET", "HEAD"}
	readable
}

readable if {
	some name in input.registries
	name != "github-releases"
}

readable if {
	"github-releases" in input.registries
	regex.match(`^(/api/v3)?(/repos)?/[^/]+/[^/]+/releases(/|$)|^/github-production-release-asset[^/]*/`, input.path)
}

# METADATA
# title: Registries must not be written to
# custom:
#   rule: egress.registry-method
#   severity: medium
#   category: publishing
#   match: [
#     {kind: request, protocol: https, method: PUT, path: /left-pad, registries: [npm]},
#     {kind: request, protocol: https, method: POST, path: /legacy/, registries: [pypi]},
#     {kind: request, protocol: https, method: DELETE, path: /x, registries: [maven], grants: ["registry:maven", "api.example.com"]},
#     {kind: request, protocol: https, method: POST, path: /-/npm/v1/security/audits, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /x, size: 5, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /x, size: -1, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /x, query: 5000, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /packages/jason, query: 1, registries: [hex]},
#     {kind: request, protocol: https, method: GET, name: services.gradle.org, path: /distributions/gradle-9.zip, query: 1, registries: [gradle]},
#     {kind: request, protocol: https, method: GET, path: /p2/a/b.json, escaped: true, registries: [packagist]}
#   ]
#   not_match: [
#     {kind: request, protocol: https, method: GET, path: /left-pad, registries: [npm]}, {kind: request, protocol: https, method: PUT, path: /x},
#     {kind: request, protocol: https, method: GET, path: /x, query: 1200, registries: [github-releases]},
#     {kind: request, protocol: https, method: GET, name: release-assets.githubusercontent.com, path: /x, query: 900, registries: [gradle]},
#     {kind: request, protocol: https, method: GET, path: /@scope/x, escaped: true, registries: [npm]}
#   ]
deny contains lib.denial(
	"egress.registry-method",
	sprintf("%s is not allowed: registries are read-only", [input.method]),
	"read with GET; to write to a host, request it by name, without its registry",
) if {
	input.kind == "request"
	input.registry == true
	not input.method in {"GET", "HEAD"}
}

deny contains lib.denial(
	"egress.registry-method",
	"a request to a registry must not send data in a body, nor in a query or an escaped slash that its protocol does not have",
	"read with a plain GET",
) if {
	input.kind == "request"
	input.registry == true
	carries
}

carries if input.size != 0

carries if input.query > 4096

carries if {
	input.query > 0
	every row in data.registries {
		not has_it(row, "queries")
	}
}

carries if {
	input.escaped == true
	every row in data.registries {
		not has_it(row, "slashes")
	}
}

# has_it: the protocol of one of the place's registries has queries or escaped slashes, on the place's host.
has_it(row, what) if {
	row.name in input.registries
	row[what] == true
}

has_it(row, what) if {
	row.name in input.registries
	input.name in row[what]
}

# METADATA
# title: A registry's host is read only at the paths of its protocol
# description: Paths for accounts, publishing, search and other owners' data are not among them, and neither is one with an escaped slash.
# custom:
#   rule: egress.registry-path
#   severity: medium
#   category: network
#   match: [
#     {kind: request, protocol: https, method: GET, name: pub.dev, path: /api/account, grants: ["registry:pub"]},
#     {kind: request, protocol: https, method: GET, name: api.github.com, path: /user, grants: ["registry:packagist"]}
#   ]
#   not_match: [
#     {kind: request, protocol: https, method: GET, name: pub.dev, path: /api/packages/http, registries: [pub], grants: ["registry:pub"]},
#     {kind: request, protocol: https, method: GET, name: pub.dev, path: /api/account, grants: ["registry:npm"]},
#     {kind: request, protocol: https, method: GET, name: api.github.com, path: /user, grants: ["registry:packagist", "api.github.com"]},
#     {kind: lookup, name: pub.dev, grants: ["registry:pub"]}
#   ]
deny contains lib.denial(
	"egress.registry-path",
	sprintf("%s is not a path that registry %s is read with", [input.path, row.name]),
	"install packages from the registry, and nothing else of its host",
) if {
	input.kind == "request"
	input.registry == false
	input.named == false
	some row in data.registries
	sprintf("registry:%s", [row.name]) in input.grants
	some url in row.public
	startswith(url, sprintf("https://%s/", [input.name]))
}

# METADATA
# title: Publishing to a registry and logging in there are denied
# description: This is recognized by the path, whatever the method and whatever a mirror puts before the path.
# custom:
#   rule: egress.publish
#   severity: medium
#   category: publishing
#   match: [
#     {kind: request, protocol: https, method: PUT, path: /-/user/org.couchdb.user:x, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /mirror/npm/-/npm/v1/tokens, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /-/NPM/v1/Tokens, registries: [npm]},
#     {kind: request, protocol: https, method: POST, path: /-/v1/login, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /-/package/x/dist-tags, registries: [npm]},
#     {kind: request, protocol: https, method: POST, path: /legacy/, registries: [pypi]},
#     {kind: request, protocol: https, method: PUT, path: /api/v1/crates/new, registries: [crates]},
#     {kind: request, protocol: https, method: DELETE, path: /api/v1/crates/x/1.0.0/yank, registries: [crates]},
#     {kind: request, protocol: https, method: PUT, path: /api/v1/crates/x/owners, registries: [crates]},
#     {kind: request, protocol: https, method: POST, path: /api/v1/gems, registries: [rubygems]},
#     {kind: request, protocol: https, method: DELETE, path: /api/v1/gems/yank, registries: [rubygems]},
#     {kind: request, protocol: https, method: GET, path: /api/v1/api_key.json, registries: [rubygems]}
#   ]
#   not_match: [
#     {kind: request, protocol: https, method: GET, path: /user/-/user-1.0.0.tgz, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /@scope/login, registries: [npm]},
#     {kind: request, protocol: https, method: GET, path: /simple/legacy/, registries: [pypi]},
#     {kind: request, protocol: https, method: GET, path: /api/v1/crates/new-crate/1.0.0/download, registries: [crates]},
#     {kind: request, protocol: https, method: GET, path: /api/v1/gems/rails.json, registries: [rubygems]},
#     {kind: request, protocol: https, method: GET, path: /-/user/x}
#   ]
deny contains lib.denial(
	"egress.publish",
	sprintf("a request for %s publishes to %s or logs in there", [input.path, name]),
	"build, test and check the repository",
) if {
	input.kind == "request"
	input.registry == true
	some name in input.registries
	regex.match(publishing[name], input.path)
}

publishing := {
	"npm": concat("", [
		`(?i)(^|/)-/(npm/v1/(tokens|user|keys/|hooks)|user(/|$)|v1/login|whoami$`,
		`|package/[^/]+(/[^/]+)?/(dist-tags|access|collaborators)|org/|team/)`,
	]),
	"pypi": `(?i)^/(legacy|manage|account|danger-api)(/|$)`,
	"crates": `(?i)/api/v1/(me(/|$)|crates/(new$|[^/]+/([^/]+/(un)?yank|owners)$))`,
	"rubygems": `(?i)/api/v[12]/(gems(/(yank|[^/]+/owners))?|api_key|profile/me|oidc/.*|webauthn_.*)(\.(json|yaml))?$`,
}

# METADATA
# title: Requests to a registry are intercepted
# custom:
#   rule: egress.registry-seen
#   match: [
#     {name: npm.example, registries: [npm], grants: ["registry:npm"]},
#     {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm", "npm.example:4873"]}
#   ]
#   not_match: [{}, {kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}]
intercept contains {"rule": "egress.registry-seen"} if {
	input.kind == "connect"
	input.registry == true
}

# METADATA
# title: TLS to a registry must be intercepted
# custom:
#   rule: egress.registry-hidden
#   severity: medium
#   category: network
#   match: [{kind: hello, protocol: tls, sni: api.example.com, registries: [npm], grants: ["registry:npm", "api.example.com"]}]
#   not_match: [{kind: hello, protocol: tls, sni: api.example.com}]
deny contains lib.denial(
	"egress.registry-hidden",
	"TLS that is not intercepted would hide what is sent to the registry",
	"make the tool trust the run's certificates, which the usual variables name",
) if {
	input.kind == "hello"
	input.registry == true
}

# METADATA
# title: A registry's mirror may have a private address
# custom:
#   rule: egress.registry-private
#   match: [{kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}, {name: npm.example, registries: [npm], grants: ["registry:npm"]}]
#   not_match: [{}, {kind: lookup}]
private contains {"rule": "egress.registry-private"} if {
	input.registry == true
	input.kind in {"lookup", "connect"}
}
