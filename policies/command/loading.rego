# Build, test and check tools have many options that load configuration and plugins. They
# may load what is in the repository, and write under /tmp. Projects, sources, libraries and
# tests may be under /tmp, too: there is only what the run made, such as the worktree of another
# commit, and the same tool may run after cd there. Settings and plugins from there are
# denied: they change what a tool does with the repository's code, and no reader sees them.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Settings and plugins come from the workspace, not from /tmp
# custom:
#   rule: code.elsewhere
#   severity: medium
#   category: code
#   match: [
#     "npx jest --config /tmp/x.js", "rubocop --require=/tmp/x.rb", "node -r /tmp/x.js a.js", "./mvnw -s /tmp/x.xml test",
#     "gradle -c /tmp/settings.gradle", "rustc --extern x=/tmp/x.so a.rs"
#   ]
#   not_match: [
#     "pytest --basetemp=/tmp/x", "go test -coverprofile=/tmp/c.out ./...", "cmake -B /tmp/build -S .", "mypy --cache-dir /tmp/m src",
#     "python3 /tmp/repro.py", "jar -cf /tmp/x.jar -C out .", "sphinx-build -d /tmp/x docs /tmp/out", "gcc -I/tmp/base/include -Wall /tmp/x.c -o /tmp/x",
#     "gcc -Iinclude /tmp/x.c -o /tmp/x",
#     "cmake --build /tmp/b", "ctest --test-dir /tmp/b", "java -cp /tmp/out A", "cargo test --manifest-path /tmp/base/Cargo.toml",
#     "node --test /tmp/r.test.js", "gcov -n /tmp/x.c", "npm --prefix /tmp/base test", "./gradlew -p /tmp/base test"
#   ]
deny contains lib.denial(
	"code.elsewhere",
	sprintf("%s takes %q from /tmp, where no reader of the pull request sees it", [p.name, p.value]),
	"use a file of the workspace; to use another project's own settings, run the tool in its directory: `cd /tmp/base && npm test`",
) if {
	some p in input.command.paths
	p.name != ""
	regex.match(`^/tmp(/|$)`, p.value)
	tooling
	not written_by(p.name)
	not written(p)
	not placed(p)
}

# placed is true for options that name a project, or a directory or archive of sources, headers,
# libraries, classes or tests.
placed(p) if {
	some tools, names in place_options
	some tool in {placing_tool, input.command.program}
	regex.match(concat("", ["^(", tools, ")$"]), tool)
	regex.match(concat("", ["^(", names, ")$"]), p.name)
}

# A library that a compiler of Rust loads is code that runs in it, unless it is one of Rust's own.
placed(p) if {
	input.command.program in {"rustc", "rustdoc"}
	p.name == "--extern"
	regex.match(`\.(rlib|rmeta)$`, p.value)
}

# The tool that reads the options is that of `npx vitest` and of `python3 -m pytest`.
placing_tool := trim_suffix(last_part(input.command.tool), "w") if {
	last_part(input.command.tool) in {"gradlew", "mvnw"}
} else := split(last_part(input.command.tool), " ")[0]

place_options := {
	`gcc|g\+\+|cc|c\+\+|clang|clang\+\+`: `-([IDU].*|L|F|isystem|iquote|idirafter|include|W[a-z][\w-]*|f[a-z][\w-]*|O.?|g.*|std|M|MM)`,
	`clang-tidy`: `-p`,
	`cppcheck`: `-I|--project|--include`,
	`gcov|lcov`: `-d|-a|--directory|--add-tracefile`,
	`cmake`: `-S|--build`,
	`ctest`: `--test-dir`,
	`meson`: `-C`,
	`protoc`: `-I|--proto_path`,
	`buf`: `--against|--path`,
	`java|javac|javap|javadoc|kotlinc|scala`: `-cp|-classpath|--class-path|-jar|-p|--module-path|-sourcepath|--source-path`,
	`mvn`: `-f|--file`,
	`gradle`: `-p|--project-dir`,
	`cargo`: `--manifest-path`,
	`rustc|rustdoc`: `-L`,
	`npm`: `--prefix`,
	`pnpm`: `-C|--dir`,
	`yarn`: `--cwd`,
	`jest`: `--rootDir|--roots`,
	`vitest`: `--root|--dir`,
	`tsc`: `-p|--project|-b|--build`,
	`pytest|py\.test`: `--rootdir`,
	`unittest|python3`: `-s|-t|--start-directory|--top-level-directory`,
	`ruby|perl|prove|rspec`: `-I.*`,
	`uv`: `--project|--directory`,
	`poetry`: `-C|--directory|-P|--project`,
	`pdm`: `-p|--project`,
	`dotnet`: `--project`,
	`swift`: `--package-path`,
	`zig`: `-I|-L|-femit-bin`,
	`valgrind`: `--suppressions`,
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

written_by("-d") if input.command.tool in {"babel", "hugo", "jekyll", "mdbook", "mkdocs", "sphinx-build", "swc"}

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
