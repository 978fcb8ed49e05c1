# Tools that mostly administer something, and of which a reviewer needs a few verbs that
# check and print. Those are listed; all others are refused.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Tools of which only the verbs that check and print are of use here
# custom:
#   rule: judged.verb
#   match: ["openssl s_client -connect x:1", "openssl enc -d -in x", "openssl req -engine ./x", "helm install x y", "helm template x --post-renderer ./x", "terraform apply", "terraform init", "terraform -chdir=/opt validate", "jupyter notebook", "jupyter nbconvert --execute x.ipynb", "pre-commit install", "pre-commit autoupdate", "mkdocs serve", "mkdocs gh-deploy", "openssl", "openssl dgst -provider ./x f", "sphinx-build -D extensions=evil . out"]
#   not_match: ["openssl version", "openssl x509 -in a.pem -noout -text", "helm lint charts/app", "helm template charts/app --set a=b", "terraform fmt -check", "terraform validate", "jupyter nbconvert --to script x.ipynb --stdout", "pre-commit run --all-files", "mkdocs build --strict", "openssl dgst -sha256 x"]
deny contains lib.denial("judged.verb", sprintf("%s %s reaches out, serves, or runs what the text does not show", [input.command.program, verb]), sprintf("use %s with one of %s", [input.command.program, concat(", ", verbs)])) if {
	verbs := plain_verbs[input.command.program]
	verb := first_word
	not verb in verbs
	not tls_client
}

default first_word := ""

first_word := input.command.argv[0]

plain_verbs := {
	"openssl": {"version", "x509", "dgst", "verify", "asn1parse", "sha256", "sha1", "sha512", "md5", "crl", "pkey", "rsa", "ec", "req", "base64"},
	"helm": {"lint", "template", "version"},
	"terraform": {"fmt", "validate", "version"},
	"jupyter": {"nbconvert", "--version"},
	"pre-commit": {"run", "validate-config", "validate-manifest", "--version"},
	"mkdocs": {"build", "--version"},
}

deny contains lib.denial("judged.verb", sprintf("%s's %s loads code, runs a program or reaches out", [input.command.program, word]), "leave the option out") if {
	pattern := judged_options[input.command.program]
	some word in input.command.argv
	regex.match(pattern, word)
	not tls_client
}

judged_options := {
	"openssl": `^--?(engine|provider|provider-path|config|out|keyout|passin|passout|rand|writerand|CAkey|sign|connect|signer|keyform|newkey|new|subj)$`,
	"helm": `^--(post-renderer|kube|repo|ca-file|output-dir=/|registry|plugin|validate|dependency-update|values=http)|^https?://|^oci://|^-f=?http`,
	"terraform": `^-(chdir|plugin-dir|state|from-module|backend)`,
	"jupyter": `^--(execute|config|ExecutePreprocessor|template|allow-errors|inplace|post|to=serve|debug|Exporter|Template)|^serve$|^--[A-Z]`,
	"bat": `^--(pager|config|paging=always|cache|diagnostic|theme-.*/)|^cache$`,
	"batcat": `^--(pager|config|paging=always)|^cache$`,
	"fd": `^(-[a-zA-Z]*[xX]|--exec|--exec-batch|--ignore-file|--list-details)`,
	"fdfind": `^(-[a-zA-Z]*[xX]|--exec|--exec-batch|--ignore-file)`,
	"dot": `^-(o/|[cC]$|l)|^-o(/|~|\.\.)`,
	"tidy": `^(-config|-o|-f|-m|-modify|-output|--output-file|--write-back|--error-file|--gnu|--input)`,
	"pre-commit": `^(--config|-c|--hook-stage=post|try-repo)`,
	"sphinx-build": `^(-c|--conf-dir|(-D ?)?(extensions|templates_path|html_static_path|html_extra_path|locale_dirs|exclude_patterns|source_parsers|latex_engine|setup|html_theme_path)=)`,
	"mkdocs": `^(-f|--config-file|-t|--theme)`,
	"kubeconform": `^-(schema-location|cache|http|insecure)`,
	"envsubst": `^(-v|--variables)$`,
}
