# Scanners and converters read the repository, and print what they found or write it in the workspace or below /tmp. Each has
# its verbs here and its options in options.txt: others, some of which run filters, reach the network or write in other
# ways, are denied.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Scanners and converters only read, with the verbs and operands that are listed
# custom:
#   rule: check.use
#   severity: medium
#   category: files
#   match: [
#     "trivy image x", "trivy -f json image evil", "trivy -c x.yml server", "alembic -c x.ini upgrade head", "kustomize edit set image x",
#     "kustomize build github.com/x/y", "syft evil/x:latest", "syft . -o template=conftest.py", "zizmor owner/repo", "lychee README.md",
#     "osv-scanner -r .", "osv-scanner fix --offline", "pandoc lua x.lua", "pandoc -t x.lua a.md", "ffprobe tcp://203.0.113.9:80",
#     "gitleaks dir -r=conftest.py .", "pdftotext a.pdf .github/workflows/ci.yml", "pandoc -so .npmrc a.md",
#     "kustomize build -o.npmrc .", "kustomize build --enable_exec .", "zizmor --lsp", "lychee --offline=false README.md",
#     "uv run alembic upgrade head", "gitleaks git --log-opts='--output=x' ."
#   ]
#   not_match: [
#     "trivy fs --offline-scan .", "trivy config .", "gitleaks detect --no-git -s . -v", "gitleaks dir . --redact",
#     "gitleaks git --log-opts=HEAD~5..HEAD .", "syft dir:. -o json",
#     "syft . -o cyclonedx-json=/tmp/s.json", "zizmor .github/workflows", "lychee --offline README.md docs", "kustomize build overlays/dev",
#     "alembic heads", "alembic history", "osv-scanner --offline -r .", "pdftotext a.pdf -", "pandoc README.md -t plain",
#     "ffprobe -v error -show_format a.mp4", "pandoc -f markdown -t html -o /tmp/r.html README.md", "ansible-lint playbooks"
#   ]
deny contains lib.denial("check.use", sprintf("%s must not be used with %q", [input.command.tool, word]), check_instead) if {
	input.command.tool in checking
	some word in unchecked
}

check_instead := sprintf("scan or convert files of the workspace, as in `%s`", [check_example[input.command.tool]])

check_example := {
	"alembic": "alembic heads", "ansible-lint": "ansible-lint playbooks", "ffprobe": "ffprobe -show_format a.mp4", "gitleaks": "gitleaks dir . --redact",
	"kustomize": "kustomize build overlays/dev", "lychee": "lychee --offline README.md", "osv-scanner": "osv-scanner --offline -r .",
	"pandoc": "pandoc README.md -t plain", "pdftotext": "pdftotext a.pdf -", "syft": "syft dir:. -o json", "trivy": "trivy fs --offline-scan .",
	"zizmor": "zizmor .github/workflows",
}

checking := object.keys(check_example)

check_verbs := {
	"alembic": {"heads", "history", "current", "branches", "check"},
	"gitleaks": {"detect", "dir", "directory", "git", "protect", "version"},
	"kustomize": {"build", "version"},
	"trivy": {"fs", "filesystem", "config", "version"},
}

# check_operands are the operands of the others.
check_operands := {
	"ffprobe": file_name,
	"kustomize": `^(\.{1,2}|/tmp|[\w-]+)(/[\w.-]+)*/?$`,
	"osv-scanner": `^(scan|source|\.{1,2}|/tmp|.*[./].*)$`,
	"pandoc": `^([\w -]*[./][\w./ -]*|-)$`,
	"pdftotext": file_name,
	"syft": `^(scan|(dir:|file:)?(\.{1,2}|/tmp)(/[\w.-]+)*/?|(dir|file):[\w.-]+(/[\w.-]+)*/?)$`,
	"trivy": file_name,
	"zizmor": `^(\.|\.[\w./-]*|[\w./-]+\.ya?ml|[\w-]+/)$`,
}

file_name := `^[\w./ -]+$`

check_values := {
	"gitleaks": {"-log-opts": `^(--all|-\d+|\w[\w./~^@-]*(\.\.\.?(\w[\w./~^@-]*)?)?)$`},
	"pandoc": {"--to": `^[a-z0-9_+-]+$`, "--from": `^[a-z0-9_+-]+$`},
	"syft": {"-output": `^[a-z-]+(=/tmp/\w[\w.-]*)?$`},
	"ffprobe": {"-i": file_name},
}

unchecked contains input.command.sub if {
	known := check_verbs[input.command.tool]
	not input.command.sub in known
	input.command.sub != ""
}

unchecked contains name if some name in input.command.unknown

unchecked contains w.value if {
	some w in input.command.operands
	not regex.match(check_operands[input.command.tool], w.value)
	check_operands[input.command.tool]
}

unchecked contains o.value if {
	some o in input.command.options
	pattern := check_values[input.command.tool][o.name]
	not regex.match(pattern, o.value)
}

# What they write is no formatted source, so it controls no tool.
unchecked contains e.value if {
	some e in input.command.effects
	e.kind == "write"
	e.place in {"git", "control"}
}

# Without it, these look at addresses, or ask a database.
unchecked contains "the network" if {
	input.command.tool in {"lychee", "osv-scanner"}
	count({"-offline", "-help", "-version"} & {o.name | some o in input.command.options; o.value == ""}) == 0
}
