package fumehood.egress

import data.fumehood.lib

# A registry is read and never written to. Its hosts come from the settings of the
# machine's own tools, so they may be a company's mirror on a private address, and
# whatever is read there is seen: each request, never a stream.

# METADATA
# title: The hosts of a granted registry are looked up and connected to
# custom:
#   rule: egress.registry
#   match: [{kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}, {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm"]}]
#   not_match: [{name: npm.example, grants: ["registry:npm"]}, {kind: hello, protocol: tls, name: npm.example, sni: npm.example, registries: [npm], grants: ["registry:npm"]}]
allow contains {"rule": "egress.registry"} if {
	input.registry == true
	input.kind in {"lookup", "connect"}
}

# METADATA
# title: A registry is read
# custom:
#   rule: egress.registry-read
#   match: [{kind: request, protocol: https, method: GET, path: /left-pad, registries: [npm]}, {kind: request, protocol: http, port: 80, method: HEAD, path: /dists/stable/InRelease, registries: [apt]}, {kind: request, protocol: https, method: GET, path: /cli/cli/releases/download/v2.0.0/x.tar.gz, registries: [github-releases]}, {kind: request, protocol: https, method: GET, path: /github-production-release-asset/1/2, registries: [github-releases]}]
#   not_match: [{kind: request, protocol: https, method: POST, path: /left-pad, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /x}, {kind: request, protocol: https, method: GET, path: /somebody/somegist, registries: [github-releases]}, {kind: request, protocol: https, method: GET, path: /search, registries: [github-releases]}, {kind: request, protocol: https, method: get, path: /x, registries: [npm]}]
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
# title: A registry is only read
# custom:
#   rule: egress.registry-method
#   match: [{kind: request, protocol: https, method: PUT, path: /left-pad, registries: [npm]}, {kind: request, protocol: https, method: POST, path: /legacy/, registries: [pypi]}, {kind: request, protocol: https, method: DELETE, path: /x, registries: [maven], grants: ["registry:maven", "api.example.com"]}, {kind: request, protocol: https, method: POST, path: /-/npm/v1/security/audits, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /x, size: 5, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /x, size: -1, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /x, query: 5000, registries: [npm]}]
#   not_match: [{kind: request, protocol: https, method: GET, path: /left-pad, registries: [npm]}, {kind: request, protocol: https, method: PUT, path: /x}, {kind: request, protocol: https, method: GET, path: /x, query: 1200, registries: [github-releases]}]
deny contains lib.denial("egress.registry-method", sprintf("%s: a registry is only read here", [input.method]), "read from it with GET; to write somewhere ask for that host by name, without its registry") if {
	input.kind == "request"
	input.registry == true
	not input.method in {"GET", "HEAD"}
}

deny contains lib.denial("egress.registry-method", "a request to a registry that carries data: a body, or a long query", "read from it with a plain GET") if {
	input.kind == "request"
	input.registry == true
	carries
}

carries if input.size != 0

carries if input.query > 4096

# METADATA
# title: Nothing is published, and nobody logs in, at a registry
# description: By the path, whatever the method and whatever stands before it at a mirror.
# custom:
#   rule: egress.publish
#   match: [{kind: request, protocol: https, method: PUT, path: /-/user/org.couchdb.user:x, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /mirror/npm/-/npm/v1/tokens, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /-/NPM/v1/Tokens, registries: [npm]}, {kind: request, protocol: https, method: POST, path: /-/v1/login, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /-/package/x/dist-tags, registries: [npm]}, {kind: request, protocol: https, method: POST, path: /legacy/, registries: [pypi]}, {kind: request, protocol: https, method: PUT, path: /api/v1/crates/new, registries: [crates]}, {kind: request, protocol: https, method: DELETE, path: /api/v1/crates/x/1.0.0/yank, registries: [crates]}, {kind: request, protocol: https, method: PUT, path: /api/v1/crates/x/owners, registries: [crates]}, {kind: request, protocol: https, method: POST, path: /api/v1/gems, registries: [rubygems]}, {kind: request, protocol: https, method: DELETE, path: /api/v1/gems/yank, registries: [rubygems]}, {kind: request, protocol: https, method: GET, path: /api/v1/api_key.json, registries: [rubygems]}]
#   not_match: [{kind: request, protocol: https, method: GET, path: /user/-/user-1.0.0.tgz, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /@scope/login, registries: [npm]}, {kind: request, protocol: https, method: GET, path: /simple/legacy/, registries: [pypi]}, {kind: request, protocol: https, method: GET, path: /api/v1/crates/new-crate/1.0.0/download, registries: [crates]}, {kind: request, protocol: https, method: GET, path: /api/v1/gems/rails.json, registries: [rubygems]}, {kind: request, protocol: https, method: GET, path: /-/user/x}]
deny contains lib.denial("egress.publish", sprintf("%s publishes to %s or logs in there", [input.path, name]), "build, test and check what the repository holds") if {
	input.kind == "request"
	input.registry == true
	some name in input.registries
	regex.match(publishing[name], input.path)
}

publishing := {
	"npm": `(?i)(^|/)-/(npm/v1/(tokens|user|keys/|hooks)|user(/|$)|v1/login|whoami$|package/[^/]+(/[^/]+)?/(dist-tags|access|collaborators)|org/|team/)`,
	"pypi": `(?i)^/(legacy|manage|account|danger-api)(/|$)`,
	"crates": `(?i)/api/v1/(me(/|$)|crates/(new$|[^/]+/([^/]+/(un)?yank|owners)$))`,
	"rubygems": `(?i)/api/v[12]/(gems(/(yank|[^/]+/owners))?|api_key|profile/me|oidc/.*|webauthn_.*)(\.(json|yaml))?$`,
}

# METADATA
# title: What is sent to a registry is seen
# custom:
#   rule: egress.registry-seen
#   match: [{name: npm.example, registries: [npm], grants: ["registry:npm"]}, {name: npm.example, port: 4873, registries: [npm], grants: ["registry:npm", "npm.example:4873"]}]
#   not_match: [{}, {kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}]
intercept contains {"rule": "egress.registry-seen"} if {
	input.kind == "connect"
	input.registry == true
}

# METADATA
# title: No TLS to a registry that is not seen
# custom:
#   rule: egress.registry-hidden
#   match: [{kind: hello, protocol: tls, sni: api.example.com, registries: [npm], grants: ["registry:npm", "api.example.com"]}]
#   not_match: [{kind: hello, protocol: tls, sni: api.example.com}]
deny contains lib.denial("egress.registry-hidden", "TLS that is not intercepted would hide what is sent to the registry", "let the tool trust the run's own certificates, which the usual variables name") if {
	input.kind == "hello"
	input.registry == true
}

# METADATA
# title: A mirror may lie on a private address
# custom:
#   rule: egress.registry-private
#   match: [{kind: lookup, name: npm.example, registries: [npm], grants: ["registry:npm"]}, {name: npm.example, registries: [npm], grants: ["registry:npm"]}]
#   not_match: [{}, {kind: lookup}]
private contains {"rule": "egress.registry-private"} if {
	input.registry == true
	input.kind in {"lookup", "connect"}
}
