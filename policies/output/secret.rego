package fumehood.output

import data.fumehood.lib

# A command's output and files are searched for secrets before they leave. Rules see which
# detector found something, and never the secret itself.

# METADATA
# title: Text that looks like a secret is redacted
# custom:
#   rule: output.secret
#   match: [{secrets: [{rule: github-pat, count: 1}]}, {kind: output, name: out/a.txt, secrets: [{rule: jwt, count: 3}]}]
#   not_match: [{}, {masked: 2}]
redact contains {"rule": "output.secret", "secret": secret.rule} if {
	some secret in input.secrets
}

# METADATA
# title: Binary files that contain what looks like a secret are withheld
# description: Redaction would corrupt the file.
# custom:
#   rule: output.binary
#   severity: medium
#   category: credentials
#   match: [{kind: output, name: core.1, binary: true, secrets: [{rule: private-key, count: 1}]}]
#   not_match: [{kind: output, name: plot.png, binary: true}, {kind: output, name: a.txt, secrets: [{rule: private-key, count: 1}]}]
deny contains lib.denial(
	"output.binary",
	"it is a binary file and contains what looks like a secret",
	"write it as text, in which secrets are redacted, or remove the secret",
) if {
	input.binary == true
	input.found > 0
}
