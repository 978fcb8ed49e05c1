# Inspectors are scanners, linters and converters: they read files, and print or write what they found or made of them.
# There are more of them than options.txt can describe. So they are allowed by what they can do and not by their options:
# they start only what options.txt lists for them, have no network, and get no word that names a control file, a program,
# code, a server or an address. A repository's configuration can name further ones (allow-tools).
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Scanners, linters and converters that read files
# custom:
#   rule: tool.inspect
#   match: ["grype dir:.", "ffmpeg -i a.mp4 -f null -", "pdfinfo a.pdf", "elm-test"]
#   not_match: ["./grype dir:.", "/tmp/ffmpeg -i a.mp4"]
allow contains {"rule": "tool.inspect"} if {
	input.command.place in found
	input.command.inspector
	not input.command.configured
	starts_itself
}

# METADATA
# title: Tools that the repository's configuration names may run, as inspectors
# custom:
#   rule: tool.configured
#   not_match: ["acmelint src"]
allow contains {"rule": "tool.configured"} if {
	input.command.configured
	input.command.inspector
	not input.command.tool in lib.programs
	not lib.refused[input.command.tool]
	not input.command.tool in (((word_starters | outward_tools) | fetchers_of_tools) | browsers)
	not lib.loader(input.command.tool)
}

# METADATA
# title: Inspectors of projects may start programs of the repository
# custom:
#   rule: grant.inspector
#   grants: ["elm-test", "interrogate src"]
#   not_grants: ["grype dir:.", "ffmpeg -i a.mp4 -f null -"]
exec contains {"rule": "grant.inspector", "kind": "built"} if {
	input.command.place in found
	input.command.inspector
	input.command.starts == "any"
	starts_itself
}

# starts_itself is false for a tool that a launcher starts.
starts_itself if last_part(input.command.written) == input.command.tool

# METADATA
# title: Inspectors get no words that name programs, code, servers or addresses
# custom:
#   rule: tool.word
#   severity: medium
#   category: code
#   match: [
#     "ffmpeg -i tcp://203.0.113.9:80 a.mp4", "exiftool -if 'system(1)' a.jpg", "exiftool -stay_open True -@ x", "exiftool '-p${x}' a.jpg",
#     "k6 run x.js", "k6 --address localhost:1 inspect x.js", "forge install evil/x", "forge i x", "terrascan server", "redocly push a.yaml",
#     "plantuml -picoweb:8080", "plantuml @args", "dbt --profiles-dir . run-operation x", "svgo --plugin ./x a.svg", "pmd check --plugin=x",
#     "elm-test --compiler ./x", "npx --no-install swagger-cli serve a.yml", "uv run detect-secrets audit x", "diffoscope --diff-command=./x a b",
#     "nilaway -vettool=./x ./...", "lintian --user x -- sh", "grype db update", "magick -script x", "convert msl:x.msl y", "convert 'a|sh' b"
#   ]
#   not_match: [
#     "grype dir:.", "ffmpeg -i a.mp4 -f null -", "convert logo.png -resize 50% /tmp/l.png", "exiftool a.jpg", "ktlint", "forge test",
#     "k6 inspect script.js", "elm make src/Main.elm --output=/dev/null", "kube-score score k8s/a.yaml", "mmdc -i a.mmd -o /tmp/a.svg", "sqlc vet",
#     "dbt parse", "interrogate ./server", "pmd check -d src", "spotbugs -textui build", "./gradlew --plugin x",
#     "npx --no-install redocly lint a.yaml", "ffmpeg -i a.wav -af 'aformat=fltp' /tmp/out.wav", "redocly lint --skip-plugins openapi.yaml"
#   ]
deny contains lib.denial("tool.word", sprintf("%s must not be used with %q, %s", [input.command.tool, word, why]), instead) if {
	input.command.inspector
	some [word, why, instead] in inspector_words
}

inspector_words contains [word, "which may name a program, code or a server", "remove the option, or use the tool's configuration file"] if {
	some word in input.command.argv
	regex.match(inspector_option, word)
	not regex.match(`^--(no|skip|disable|exclude|without|ignore|hide)-`, word)
}

inspector_option := concat("", [
	`^--?([A-Za-z0-9.]+[-_.])*(command|cmd|compiler|exec(ute)?|eval|hooks?|plugins?|scripts?|shell`,
	`|program|pager|editor|browser|interpreter|preprocess(or)?|callback|serve|server|daemon|listen`,
	`|port|address|bind|picoweb|ftp|upload|publish|login|install|token|stay_open|repl|vettool`,
	`|toolexec|preload|loader|update|module[-_]?(dir|path)?|load|require|watch)`,
	`([-_.][A-Za-z0-9.]+)*(=|:|$)`,
])

inspector_words contains [word, "an address, and the command has no network", "name a file in the workspace"] if {
	some word in input.command.argv
	regex.match(`[a-zA-Z][\w+.-]*:(\\*/){2}`, word)
}

inspector_words contains [word, "whose code or further arguments the text does not show", "write plain arguments"] if {
	some word in input.command.argv
	regex.match("^-?@[^/]*$|\\$\\{|`|(^|\\W)(system|exec|eval|open|popen|require|spawn|unlink|rename)\\s*[('\"]", word)
}

inspector_words contains [word, "which is code or names other files to write", "remove it, and select from the output with grep or jq"] if {
	some tools, words in coded_words
	regex.match(concat("", ["^(", tools, ")$"]), input.command.tool)
	some word in input.command.argv
	regex.match(words, word)
}

# coded_words are words that a tool follows in its own process, where no gate is.
coded_words := {
	`asciidoctor`: `^-[rIT]|^--(require|template-dir|load-path)|allow-uri-read`,
	`cfn-lint`: `^-(a|u)$|^--(append-rules|update-|override-spec|registry)`,
	`convert|magick|identify|montage|compare`: concat("", [
		`(?i)(^|\[)(msl|mvg|ephemeral|show|win|x|url|fd):|\.(msl|mvg)$|\|`,
		`|^-(write|distribute-cache|display)$`,
	]),
	`clj|clojure`: `^-(S|[eir]$)|^--(eval|init|repl)`,
	`doxygen`: `^-$`,
	`duckdb`: `(?i)\b(copy|export|install|load|attach)\b|^-+(init|cmd|f|file)$|(^|\n)\s*\.`,
	`exiftool`: `(?i)^-(if\d*|p|api|config|execute\d*|[wW]!?|o|tagsfromfile)$|^-[\w:-]+[-+^]?<?=|^-[\w:-]+<`,
	`ffmpeg`: concat("", [
		`(?i)^-(dump_attachment|progress|vstats_file|stats_enc|sdp_file|passlogfile|attach)`,
		`|zmq|(^|=|\])a?movie=|^(concat|subfile|pipe|fd|tee|crypto|cache):`,
	]),
	`fzf`: `^--(bind|preview|history|become)`,
	`jsonnet|nickel|cue|ytt`: `^-(m|-multi|-output-files|-dangerous\S*)(=|$)`,
	`ktlint`: `^-R|^--ruleset|^(install|generate)\w*`,
	`optipng|jpegoptim|mediainfo`: `^--?(dir|out|log|d|o|dest|LogFile)(=|$)`,
	`pants`: `^--pants-`,
	`plantuml`: `^-D`,
	`pygmentize`: `^-\w*x`,
	`scons|mage|inv|invoke`: `^-[fCDdcr]|^--(file|sconstruct|makefile|directory|site-dir|top|out|search-root|collection)`,
	`ugrep|ag|ack|sd`: `^--?(filter|view|pager|ackrc)`,
	`xsltproc`: `^--writesubtree`,
}

inspector_words contains [word, "a verb that serves, fetches, publishes, installs or changes settings", instead] if {
	some word in inspector_verbs
	regex.match(outward_verb, word)
	not word in object.get(reading_verbs, input.command.tool, set())
	not shows_database
	instead := sprintf("inspect or convert files; a directory of that name is ./%s", [word])
}

outward_verb := concat("", [
	`^(serve|server|daemon|website|playground|publish|push|([\w-]+-)?(upload|login)(-[\w-]+)?`,
	`|logout|(un)?install|init|new|create|deploy|destroy|apply|fetch|pull|download|clone|update`,
	`|upgrade|self-update|run(-operation)?|exec|start|repl|shell|console|plugins?|db|release`,
	`|register|auth|edit|audit|remote|cloud|github|gitlab|s3|gcs|docker|studio|preview(-docs)?`,
	`|sync|local|invoke|package|debug|snapshot|seed|clean|script|mcp|lsp|mod|watch)$`,
])

inspector_words contains [concat(" ", sort(inspector_verbs)), "which is not known to only read", instead] if {
	verbs := reading_verbs[input.command.tool]
	count(inspector_verbs) > 0
	count(inspector_verbs & verbs) == 0
	instead := sprintf("use one of %s", [concat(", ", sort(verbs))])
}

# grype db status prints of when its database is.
shows_database if {
	input.command.tool == "grype"
	array.slice(inspector_argv, 0, 2) == ["db", "status"]
}

# reading_verbs are those of tools most of whose verbs do more.
reading_verbs := {
	"7z": {"h", "i", "l", "t"},
	"api-extractor": {"run"},
	"arduino-cli": {"compile", "version"},
	"buck2": {"build", "cquery", "query", "targets", "test"},
	"cargo-deny": {"check", "list"},
	"cue": {"def", "eval", "export", "fmt", "trim", "version", "vet"},
	"dbt": {"compile", "list", "ls", "parse"},
	"django-admin": {"check", "diffsettings", "makemigrations", "showmigrations", "sqlmigrate", "version"},
	"cosign": {"verify-blob", "version"},
	"docusaurus": {"build"},
	"elm": {"diff", "make"},
	"forge": {"build", "coverage", "fmt", "inspect", "lint", "test", "tree"},
	"gem": {"build", "check", "contents", "list"},
	"gleam": {"build", "check", "docs", "format", "test"},
	"k6": {"inspect", "version"},
	"kcl": {"fmt", "lint", "run", "test", "vet"},
	"kyverno": {"apply", "jp", "test", "version"},
	"lein": {"check", "classpath", "cljfmt", "compile", "eastwood", "jar", "kibit", "midje", "test"},
	"nimble": {"build", "check", "dump", "tasks", "test"},
	"pants": {"check", "dependencies", "fmt", "lint", "list", "test"},
	"pio": {"check", "run", "test"},
	"platformio": {"check", "run", "test"},
	"redocly": {"bundle", "lint", "split", "stats"},
	"sam": {"build", "validate"},
	"scala-cli": {"compile", "fmt", "test"},
	"sqlc": {"compile", "diff", "generate", "vet", "version"},
	"terragrunt": {"hclfmt", "hclvalidate", "validate-inputs"},
	"terrascan": {"scan", "version"},
	"tinygo": {"build", "test", "version"},
	"tofu": {"fmt", "validate", "version"},
	"trufflehog": {"filesystem", "git"},
	"west": {"build", "list", "topdir"},
}

# inspector_verbs may be the tool's verb: before them are only options and what may be their values.
inspector_verbs contains word if {
	some i, word in inspector_argv
	i < 12
	not startswith(word, "-")
	every j, before in array.slice(inspector_argv, 0, i) { may_precede_verb(j, before) }
}

may_precede_verb(_, word) if startswith(word, "-")

may_precede_verb(j, _) if startswith(inspector_argv[j - 1], "-")

# inspector_argv are the words after the tool's name, also behind a launcher.
inspector_argv := input.command.argv if {
	input.command.tool == input.command.program
} else := array.slice(input.command.argv, at + 1, count(input.command.argv)) if {
	at := [i | some i, word in input.command.argv; startswith(last_part(word), input.command.tool)][0]
}

# One that may start any program gets no name of a program. What a launcher starts has that rule, too (code.launcher).
inspector_words contains [name, "which is the name of a program", "write the command itself"] if {
	input.command.starts == "any"
	starts_itself
	some name in foreign_words
}
