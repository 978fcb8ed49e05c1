# Build, test and check tools have many options that load configuration and plugins. They
# may load what is in the repository, and write under /tmp. A file from anywhere else is
# code that the pull request does not show.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Configuration, plugins and code come from the workspace, not from /tmp
# custom:
#   rule: code.elsewhere
#   match: [
#     "npx jest --config /tmp/x.js", "rubocop --require=/tmp/x.rb", "node -r /tmp/x.js a.js", "./mvnw -s /tmp/x.xml test",
#     "gradle -c /tmp/settings.gradle"
#   ]
#   not_match: [
#     "pytest --basetemp=/tmp/x", "go test -coverprofile=/tmp/c.out ./...", "cmake -B /tmp/build -S .", "mypy --cache-dir /tmp/m src",
#     "python3 /tmp/repro.py", "jar -cf /tmp/x.jar -C out .", "sphinx-build -d /tmp/x docs /tmp/out"
#   ]
deny contains lib.denial("code.elsewhere", sprintf("%s takes %q, which is not a file in the workspace", [p.name, p.value]), "use a file in the workspace") if {
	some p in input.command.paths
	p.name != ""
	regex.match(`^/tmp(/|$)`, p.value)
	tooling
	not written_by(p.name)
	not written(p)
}

# written is true for paths that the tool is known to write.
written(p) if {
	some e in input.command.effects
	e.kind == "write"
	e.value == p.value
}

tooling if {
	input.command.program in lib.runners
	not input.command.program in {"go", "python3", "jar"} # jar loads none
}

tooling if {
	input.command.program == "python3"
	"-m" in input.command.argv
}

tooling if {
	input.command.place == "workspace"
	regex.match(`(^|/)(vendor/bin/.*|node_modules/\.bin/.*|gradlew|mvnw|bin/(rspec|rake|rails))$`, input.command.written)
}

# written_by is true for options that name an output path.
written_by("-o") if not input.command.program in {"pytest", "py.test"}

written_by("-d") if input.command.program in {"sphinx-build", "javac", "kotlinc", "unzip", "protoc", "python3"}

written_by(name) if name in {"-B", "--", "-x", "-q", "-vv", "-D"}

written_by(name) if regex.match(`^-D[a-zA-Z_.]*([dD]ir|DIR|output|OUTPUT|prefix|PREFIX|tmpdir|[tT]arget)\w*$`, name)

written_by(name) if regex.match(writing_option, name)

writing_option := concat("", [
	`^--?([a-zA-Z]\w*[-_.])*(out|output|outfile|outdir|outDir|log|report|reports|cache|dest`,
	`|destination|target|temp|tmp|coverage|prof|profile|results?|artifacts?|trace|snapshot|basetemp`,
	`|junit\w*|\w*profile|\w*xml|html|json|cov|func|\w*prefix|destdir|save|baseline|db|sarif|envdir`,
	`|build[-_.]?(dir|directory|path|root))([-_.]?(dir|directory|file|path|folder|xml|html|json`,
	`|destination|report|Dir))?$`,
])

written_by("-C") if input.command.program in {"make", "gmake", "ninja", "meson", "ctest"}
