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
	"bat": `^--(pager|config|paging=always|cache|diagnostic|theme-.*/)|^cache$`, "batcat": `^--(pager|config|paging=always)|^cache$`,
	"fd": `^(-[a-zA-Z]*[xX]|--exec|--exec-batch|--ignore-file|--list-details)`, "fdfind": `^(-[a-zA-Z]*[xX]|--exec|--exec-batch|--ignore-file)`,
	"dot": `^-(o/|[cC]$|l)|^-o(/|~|\.\.)`, "tidy": `^(-config|-o|-f|-m|-modify|-output|--output-file|--write-back|--error-file|--gnu|--input)`,
	"pre-commit": `^(--config|-c|--hook-stage=post|try-repo)`, "sphinx-build": `^(-c|--conf-dir|(-D ?)?(extensions|templates_path|html_static_path|html_extra_path|locale_dirs|exclude_patterns|source_parsers|latex_engine|setup|html_theme_path)=)`, "mkdocs": `^(-f|--config-file|-t|--theme)`,
	"kubeconform": `^-(schema-location|cache|http|insecure)`, "envsubst": `^(-v|--variables)$`,
}

# METADATA
# title: fd and bat run no program
# custom:
#   rule: fd.program
#   match: ["fd -x rm", "fd --exec id", "fd -e go -X cat", "bat --pager=x y", "bat --pager ./x y"]
#   not_match: ["fd -e go parse", "fd --type f --extension py", "bat --plain src/a.rs"]
deny contains lib.denial("fd.program", sprintf("%s's %s runs a program", [input.command.program, word]), "leave the option out") if {
	input.command.program in {"fd", "fdfind", "bat", "batcat"}
	some word in input.command.argv
	regex.match(`^(-[a-zA-Z]*[xX]|--exec.*|--pager.*)$`, word)
}

# METADATA
# title: sqlite3 queries a file of the workspace
# custom:
#   rule: sqlite.query
#   match: ["sqlite3 x.db '.shell id'", "sqlite3 x.db \".system id\"", "sqlite3 x '.load ./x'", "sqlite3 x \"select load_extension('./x')\"", "sqlite3 x \"select writefile('/etc/x', 1)\"", "sqlite3 x \"attach '/etc/x' as y\"", "sqlite3 /etc/x.db .schema", "sqlite3 -init x y.db", "sqlite3 -cmd '.shell id' x", "sqlite3 x '.output /etc/x'", "sqlite3 x \"$q\"", "sqlite3 x < y", "sqlite3"]
#   not_match: ["sqlite3 /tmp/t.db 'create table t(a); select * from t;'", "sqlite3 -readonly testdata/app.db 'select count(*) from users'", "sqlite3 testdata/app.db .schema", "sqlite3 -json a.db 'select 1'"]
deny contains lib.denial("sqlite.query", "sqlite3 would run, load or write something else", "give a file of the workspace and a query, literally") if {
	input.command.program == "sqlite3"
	not sqlite_plain
}

sqlite_plain if {
	input.command.static
	every word in input.command.argv { sqlite_word(word) }
	count(input.command.operands) >= 2
	input.command.operands[0].place in {"workspace", "tmp"}
}

sqlite_word(word) if regex.match(`^--?(readonly|json|csv|column|header|noheader|line|list|box|table|markdown|html|ascii|batch|bail|echo|quote|safe|stats|tabs|version)$`, word)

sqlite_word(word) if {
	not startswith(word, "-")
	not regex.match(`(?i)(^|\n)\s*\.|load_extension|readfile|writefile|\battach\b|\bvacuum\b.*\binto\b|\bfts3_tokenizer|\bedit\s*\(|fsdir|lsdir|\bfile:|pragma.*(directory|module)|\bzipfile`, word)
}

sqlite_word(word) if regex.match(`^\.(schema|tables|indexes|indices|databases|dump|mode \w+|headers (on|off)|fullschema|show)( \w+)?$`, word)
