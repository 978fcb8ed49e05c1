# Administration tools of which a reviewer needs only a few verbs, to check and print.
# Those are listed; all others are denied.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Administration tools may only check and print
# custom:
#   rule: judged.verb
#   severity: medium
#   category: network
#   match: [
#     "openssl s_client -connect x:1", "openssl enc -d -in x", "helm install x y", "terraform apply", "terraform init", "jupyter notebook",
#     "pre-commit install", "pre-commit autoupdate", "mkdocs serve", "mkdocs gh-deploy", "openssl", "sphinx-build -D extensions=evil . out",
#     "lefthook install", "npx lefthook add pre-push", "poetry run pre-commit install", "xmllint http://203.0.113.9/x"
#   ]
#   reaches: [
#     "openssl s_client -connect api.example.com:443 -servername evil.example", "openssl s_client -connect api.example.com:443 -noservername -brief"
#   ]
#   not_reaches: ["openssl s_server -port 1"]
#   not_match: [
#     "openssl version", "openssl x509 -in a.pem -noout -text", "openssl rand -hex 16",
#     "helm lint charts/app", "helm template charts/app --set a=b", "terraform fmt -check",
#     "terraform validate", "jupyter nbconvert --to script x.ipynb --stdout", "pre-commit run --all-files", "mkdocs build --strict",
#     "openssl dgst -sha256 x", "lefthook run pre-commit --all-files"
#   ]
deny contains lib.denial(
	"judged.verb",
	sprintf("%s %s reaches the network, opens a server, or runs programs that the text does not show", [input.command.tool, verb]),
	sprintf("use %s with one of %s", [input.command.tool, concat(", ", verbs)]),
) if {
	verbs := plain_verbs[input.command.tool]
	verb := input.command.sub
	not verb in verbs
	not without_backend
	not chart_dependencies
	not lists_providers
	not asks_version
	not input.command.loose
	not tls_client
}

# terraform init -backend=false makes the directory ready for validate. What it has to fetch, it cannot.
without_backend if {
	input.command.program == "terraform"
	input.command.sub == "init"
	"-backend=false" in input.command.argv
	not networked
}

# helm dependency build takes what the chart's lock file names. What it has to fetch, it cannot.
chart_dependencies if {
	input.command.program == "helm"
	input.command.sub in {"dep", "dependency"}
	input.command.operands[0].value in {"list", "ls", "build"}
	not networked
}

lists_providers if {
	input.command.program == "terraform"
	input.command.sub == "providers"
	count(input.command.operands) == 0
}

# describes_itself is true for a command that prints only its version or its help.
describes_itself if {
	input.command.static
	input.command.argv in [["--version"], ["--help"]]
}

# tls_client is true for a look at a server's TLS when hosts were granted.
tls_client if {
	input.command.program == "openssl"
	input.command.argv[0] == "s_client"
	networked
}

asks_version if {
	some o in input.command.options
	o.name in {"--version", "-version", "--help", "-help", "-h"}
}

plain_verbs := {
	"openssl": {
		"version", "x509", "dgst", "verify", "asn1parse", "sha256", "sha1", "sha512", "md5", "crl", "pkey", "rsa", "ec", "req", "base64", "rand", "genrsa",
		"genpkey", "ecparam",
	},
	"helm": {"lint", "template", "version"},
	"terraform": {"fmt", "validate", "version"},
	"jupyter": {"nbconvert", "--version"},
	"pre-commit": {"run", "validate-config", "validate-manifest", "--version"},
	"lefthook": {"run", "validate", "dump", "version"},
	"mkdocs": {"build", "--version"},
	"mise": {"current", "ls", "r", "run", "tasks", "version"},
}

deny contains lib.denial("judged.verb", sprintf("%s's %s reaches the network", [input.command.program, word]), "use files in the workspace") if {
	input.command.program in {"openssl", "helm", "terraform", "kubeconform", "xmllint"}
	some word in input.command.urls
	not tls_client
}

deny contains lib.denial("judged.verb", sprintf("%s's %s loads code", [input.command.program, o.value]), "remove the option") if {
	input.command.program == "sphinx-build"
	some o in input.command.options
	regex.match(sphinx_code_setting, o.value)
}

# A key may be an address of an engine, which is code.
deny contains lib.denial("judged.verb", sprintf("openssl's %s %s is no file", [o.name, o.value]), "name a file in the workspace") if {
	input.command.program == "openssl"
	some o in input.command.options
	o.name in {"-key", "-CA", "-CAkey", "-signkey"}
	regex.match(`[:]`, o.value)
}

sphinx_code_setting := concat("", [
	`^(extensions|templates_path|html_static_path|html_extra_path|locale_dirs|exclude_patterns`,
	`|source_parsers|latex_engine|setup|html_theme_path)=`,
])
