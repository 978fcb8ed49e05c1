package fumehood.output

import data.fumehood.lib

# What a command printed and what it left is searched before it leaves. Rules see what
# was found, by the detector that found it, and never the thing itself.

# METADATA
# title: What looks like a secret is replaced
# custom:
#   rule: output.secret
#   match: [{secrets: [{rule: github-pat, count: 1}]}, {kind: output, name: out/a.txt, secrets: [{rule: jwt, count: 3}]}]
#   not_match: [{}, {masked: 2}]
redact contains {"rule": "output.secret", "secret": secret.rule} if {
	some secret in input.secrets
}

# METADATA
# title: A file that is no text is withheld when something in it looks like a secret
# description: Nothing in it could be replaced without breaking it.
# custom:
#   rule: output.binary
#   match: [{kind: output, name: core.1, binary: true, secrets: [{rule: private-key, count: 1}]}]
#   not_match: [{kind: output, name: plot.png, binary: true}, {kind: output, name: a.txt, secrets: [{rule: private-key, count: 1}]}]
deny contains lib.denial("output.binary", "it is no text and holds what looks like a secret", "write it as text, in which secrets are replaced, or leave them out") if {
	input.binary == true
	input.found > 0
}
