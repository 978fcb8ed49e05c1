package fumehood.command

import data.fumehood.lib

# Tools that run the repository's code have more options than any table holds. So
# what all their words may reach is bounded here, whatever the option is called:
# the workspace, /tmp for what is written, and nothing else.

# running holds for build, test and check tools, and for programs of the workspace.
running if input.command.program in lib.runners

running if input.command.place in {"workspace", "tmp"}

running if client

# joined is a first look at all words at once: most commands hold nothing of what
# the rules below look for, and a look at each word costs ten times as much.
joined := concat("\n", input.command.argv)

pathlike if regex.match(`(?m)(^|[=:,;@"'])(~|/|\.\./)|^-[A-Za-z](~|/|\.\./)`, joined)

# spoken are the words that may name a path: not the code after -c or -e.
spoken contains [i, word] if {
	some i, word in input.command.argv
	not inline_code(i)
}

inline_code(i) if {
	i > 0
	input.command.program in interpreters
	regex.match(`^(-[a-zA-Z0-9]*[ceErRB]|--eval|--print|-p|-pe)$`, input.command.argv[i - 1])
}

# paths are the absolute, home or upward paths in a word, wherever they stand in it.
paths(word) := {trim_left(found, `=:,;@"'`) | some found in regex.find_n(`(^|[=:,;@"'])(~|/|\.\./)[^=:,;@"' ]*|^-[A-Za-z](~|/|\.\./)[^=:,;@"' ]*`, word, -1)}

inner(path) if regex.match(`^(/workspace|/tmp|/dev/(null|stdin|stdout|stderr|tty|zero|urandom|fd/[0-9]+))(/|$)`, path)

inner(path) if regex.match(`^-[A-Za-z](/workspace|/tmp)(/|$)`, path)

# A word that is one path is judged with the folder that the command runs in.
inner(path) if {
	some w in input.command.operands
	w.value == path
	w.place in {"workspace", "tmp", "null", "control"}
}

inner(path) if {
	some o in input.command.options
	o.value == path
	o.place in {"workspace", "tmp", "null", "control"}
}

# What compilers and interpreters may name because it is theirs, and read-only.
inner(path) if regex.match(`^(-[A-Za-z])?/usr/(include|lib|local/include|local/lib|share)(/|$)`, path)

# A word that begins like no folder of a system is a route, a label or a pattern:
# /api/users, //pkg:target, s/a/b/.
inner(path) if {
	regex.match(`^(-[A-Za-z])?/`, path)
	not regex.match(`^(-[A-Za-z])?/+(etc|usr|bin|sbin|lib\w*|opt|var|root|home|proc|sys|dev|boot|run|srv|mnt|media|snap|workspace|tmp)(/|$)|^(-[A-Za-z])?/+$`, path)
}

inner("//") if input.command.program in {"bazel", "buck", "pants"}

# Writing to /usr is no reading of what is theirs.
writing if {
	some word in input.command.argv
	word in {"-w", "-i", "--write", "--fix", "--in-place", "-o", "--inplace"}
}

writing if input.command.program in {"black", "isort", "autopep8", "pyupgrade", "yapf", "ld", "ar"}

deny contains lib.denial("code.outside", sprintf("%q would be written", [path]), "write in the workspace or under /tmp") if {
	contains(joined, "/usr/")
	input.command.program in lib.runners
	writing
	some [_, word] in spoken
	some path in paths(word)
	regex.match(`^/usr/`, path)
}

# METADATA
# title: Build, test and check tools stay in the workspace
# custom:
#   rule: code.outside
#   match: ["ruff check --config=/opt/x.toml .", "phpunit --bootstrap /opt/x.php", "./gradlew -p /opt/x test", "bazel --output_user_root=/etc/x test", "node --redirect-warnings=/etc/x a.js", "gcc -I/opt/evil a.c"]
#   not_match: ["gcc -I/usr/include/x a.c", "cmake -S . -B /tmp/build", "bazel test //pkg:x", "pytest -k 'a/b'"]
deny contains lib.denial("code.outside", sprintf("%q is outside the workspace and /tmp", [path]), "use files of the workspace, or under /tmp for what is written") if {
	pathlike
	running
	some [_, word] in spoken
	not contains(word, "://")
	some path in paths(word)
	not inner(path)
}

# METADATA
# title: Configuration, plugins and code come from the workspace, not from /tmp
# custom:
#   rule: code.elsewhere
#   match: ["npx jest --config /tmp/x.js", "rubocop --require=/tmp/x.rb", "node -r /tmp/x.js a.js", "./mvnw -s /tmp/x.xml test", "gradle -c /tmp/settings.gradle"]
#   not_match: ["pytest --basetemp=/tmp/x", "go test -coverprofile=/tmp/c.out ./...", "cmake -B /tmp/build -S .", "mypy --cache-dir /tmp/m src", "python3 /tmp/repro.py", "sphinx-build -d /tmp/x docs /tmp/out"]
deny contains lib.denial("code.elsewhere", sprintf("%s takes %q, which is no file of the workspace", [name, path]), "use a file of the workspace") if {
	contains(joined, "/tmp")
	tooling
	some [i, word] in spoken
	startswith(word, "-")
	name := regex.replace(word, `[=:/].*`, "")
	some path in (paths(word) | following(i, word))
	regex.match(`^(-[A-Za-z])?/tmp(/|$)`, path)
	not written_by(name)
}

tooling if {
	input.command.program in lib.runners
	not input.command.program in {"go", "python3"}
}

tooling if {
	input.command.program == "python3"
	"-m" in input.command.argv
}

tooling if {
	input.command.place == "workspace"
	regex.match(`(^|/)(vendor/bin/.*|node_modules/\.bin/.*|gradlew|mvnw|bin/(rspec|rake|rails))$`, input.command.written)
}

following(i, word) := paths(input.command.argv[i + 1]) if {
	not contains(word, "=")
	i + 1 < count(input.command.argv)
	not startswith(input.command.argv[i + 1], "-")
} else := set()

# written_by holds for options that say where something is written.
written_by("-o") if not input.command.program in {"pytest", "py.test"}

written_by("-d") if input.command.program in {"sphinx-build", "javac", "kotlinc", "unzip", "protoc", "python3"}

written_by(name) if name in {"-B", "--", "-x", "-q", "-vv", "-D"}

written_by(name) if regex.match(`^-D[a-zA-Z_.]*([dD]ir|DIR|output|OUTPUT|prefix|PREFIX|tmpdir|[tT]arget)\w*$`, name)

written_by(name) if regex.match(`^--?([a-zA-Z]\w*[-_.])*(out|output|outfile|outdir|outDir|log|report|reports|cache|dest|destination|target|temp|tmp|coverage|prof|profile|results?|artifacts?|trace|snapshot|basetemp|junit\w*|\w*profile|\w*xml|html|json|cov|func|\w*prefix|destdir|save|baseline|db|sarif|envdir|build[-_.]?(dir|directory|path|root))([-_.]?(dir|directory|file|path|folder|xml|html|json|destination|report|Dir))?$`, name)

written_by("-C") if input.command.program in {"make", "gmake", "ninja", "meson", "ctest"}

# METADATA
# title: Launchers start known tools only
# custom:
#   rule: code.launcher
#   match: ["poetry run bash -c id", "bundle exec sh -c id", "uv run -- sh x", "yarn exec sh", "npx concurrently 'sh -c id'", "npx nodemon --exec sh", "pnpm exec ssh x", "stack exec -- sh -c id", "hatch run sh -c id", "tox exec -- sh", "npx cross-env PATH=. sh"]
#   not_match: ["poetry run pytest", "bundle exec rspec", "uv run python -m pytest", "yarn exec tsc", "npx eslint .", "pnpm exec vitest run", "npx playwright test", "poetry run mypy src"]
deny contains lib.denial("code.launcher", sprintf("%s starts %s", [input.command.program, inner_program]), "start the tool by its own name") if {
	verb := launching[input.command.program]
	launcher := input.command.program
	some i, word in input.command.argv
	word in verb
	i <= 2
	inner_program := launched(i)
	not startable(launcher, inner_program)
}

launching := {
	"poetry": {"run"}, "uv": {"run"}, "pdm": {"run"}, "hatch": {"run"}, "pipenv": {"run"}, "bundle": {"exec"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"},
	"npm": {"exec", "x"}, "stack": {"exec"}, "cabal": {"exec"}, "tox": {"exec", "e"}, "dotnet": {"exec"}, "mix": {"run"}, "opam": {"exec"}, "dune": {"exec"},
}

launched(i) := last_part([word | some j, word in input.command.argv; j > i; not startswith(word, "-")][0])

last_part(word) := split(word, "/")[count(split(word, "/")) - 1]

startable(_, program) if program in lib.runners

startable(_, program) if program in {"python", "python3", "pytest", "tests", "test", "lint", "typecheck", "check", "format", "fmt", "types", "cov", "docs", "build"}

startable(_, program) if regex.match(`^(python3?(\.\d+)?|.*\.(py|js|ts|mjs|rb|exs|dll)|.*:.*)$`, program)

deny contains lib.denial("code.launcher", sprintf("npx starts %s", [w.value]), "use a tool of the repository by its own name") if {
	input.command.program in {"npx", "bunx", "pnpx"}
	w := input.command.operands[0]
	not npx_tool(w.value)
}

npx_tool(name) if name in lib.runners

npx_tool(name) if regex.match(`^(\./.*|@[\w.-]+/[\w.-]*(cli|lint|test|check)[\w.-]*)$`, name)

npx_tool(name) if regex.match(`^(@[\w.-]+/)?([\w]+[-.])*(\w*lint|\w*test|jest|mocha|tsc|types?|check|format|prettier|rollup|webpack|vite|esbuild|swc|babel|playwright|cypress|storybook|cspell|knip|depcheck|madge|size-limit|attw|publint|tap|ava|c8|nyc|uvu|tsx|ts-node|tsup|unbuild|svelte|astro|vue|ng|nx|turbo|next|nuxt|remix|gatsby|eleventy|prisma|codegen|openapi|redocly|redoc|spectral|markdown|remark|textlint|sass|postcss|tailwind|tailwindcss|browserslist|license|dependency-cruiser|depcruise|sort-package-json|jscpd|dprint|oxlint|biome|rome|xo|standard|wtr|karma|stryker|codemod|buf|node-gyp|react-scripts|lerna|changeset|commitlint|benchmark|tinybench|api-extractor|typedoc|jsdoc|coverage|audit-ci|bundlesize|source-map-explorer|license-checker|sol\w*|hardhat|http-server|serve|tsd|dtslint|expect-type|graphql-codegen|js-yaml|ajv|json\w*|semver|mkdirp|rimraf|cross-env-shell|expo|metro|detox|zx|vitepress|docusaurus|html-validate|pa11y|lighthouse|linkinator|lockfile-lint)([-.]\w+)*(@[\w.-]+)?$`, name)

# METADATA
# title: Targets that publish, deploy or install for everybody
# custom:
#   rule: code.target
#   match: ["make deploy", "./gradlew publish", "make install", "npm run deploy", "rake release", "sbt publish", "mvn site-deploy", "gradle uploadArchives", "npx changeset publish", "just push", "npx netlify deploy"]
#   not_match: ["make test", "./gradlew test", "npm run build", "go test ./publish", "pytest tests/test_deploy.py", "make release-notes-check"]
deny contains lib.denial("code.target", sprintf("%s %s publishes, deploys or installs", [input.command.program, word]), "build, test and check what the repository holds") if {
	input.command.program in targeting
	some i, word in input.command.argv
	regex.match(`^(--target=|--targets=|-t)?:?([\w-]+:)*(\w[\w-]*-)?([pP]ublish\w*|[dD]eploy\w*|site-deploy|upload\w*|release|push|login|ship|promote|rollout|uninstall|install-global)(:[\w:-]+)?$`, word)
	not configuration(i)
}

configuration(i) if {
	i > 0
	input.command.argv[i - 1] in {"-c", "--configuration", "--config", "--profile", "-C", "-Doptimize", "-b", "--features", "-k", "-m", "--mode", "--env", "-run", "--test", "-t", "--grep", "-g"}
}

targeting := {"make", "gmake", "gradle", "gradlew", "mvn", "mvnw", "rake", "sbt", "npm", "pnpm", "yarn", "bun", "npx", "just", "task", "ant", "mix", "wasm-pack", "invoke", "nox", "tox", "dotnet", "cargo", "lerna", "nx", "turbo", "flutter", "swift", "hatch", "flit", "poetry", "pdm", "uv", "dune", "stack", "cabal", "crystal", "composer", "rails", "bundle", "gulp", "grunt", "./gradlew", "./mvnw"}

deny contains lib.denial("code.target", sprintf("%s publishes, deploys or installs", [word]), "build, test and check what the repository holds") if {
	input.command.place == "workspace"
	regex.match(`(^|/)(gradlew|mvnw|sbt|bin/rake|bin/rails|artisan|manage\.py)$`, input.command.written)
	some word in input.command.argv
	regex.match(`(?i)^:?([\w-]+:)*((git)?publish\w*|deploy\w*|site-deploy|upload\w*|release|push|wrapper)$`, word)
}

deny contains lib.denial("code.target", "make install writes outside the workspace", "use make, make test or make check") if {
	input.command.program in {"make", "gmake", "ninja", "meson"}
	some word in input.command.argv
	regex.match(`^(install|install-\w+|uninstall|DESTDIR=/?)$`, word)
}

deny contains lib.denial("code.target", "cmake would install", "build and test in the build folder") if {
	input.command.program == "cmake"
	some i, word in input.command.argv
	regex.match(`^(--install|install)$`, word)
	i >= 0
}

deny contains lib.denial("code.target", sprintf("%s hands make the variable %s", [input.command.program, word]), "leave the repository's own settings") if {
	input.command.program in {"cmake", "ninja", "make", "gmake"}
	some word in input.command.argv
	regex.match(`^(SHELL|MAKE|MAKEFLAGS|CC|CXX|LD|AR|\.SHELLFLAGS)=[./~$]|^\w*FLAGS=.*(-fplugin|-B|-specs|-wrapper|@)`, word)
}

# METADATA
# title: Packages come from the repository's lock files, not by name
# custom:
#   rule: code.package
#   match: ["npm i evil", "npm install left-pad", "pip install evil", "python3 -m pip install evil", "yarn add evil", "pnpm add evil", "cargo add x", "cargo binstall x", "uv add x", "poetry add x", "bun add x", "uv run --with evil python -c 1", "bundle update", "pipenv install evil", "mvn dependency:get -Dartifact=a:b:1", "go get example.com/x"]
#   not_match: ["npm ci", "npm install", "pip install -e .", "pip install -r requirements.txt", "poetry install", "bundle install --local", "uv sync --frozen", "pip install --no-deps -e .", "pip install .", "python3 -m pip install -e '.[dev]'"]
deny contains lib.denial("code.package", sprintf("%s fetches a package by name, and there is no network", [input.command.program]), "use what the repository's lock files name") if {
	words := adding[input.command.program]
	some i, word in input.command.argv
	i <= 1
	word in words
	some j, named in input.command.argv
	j > i
	not regex.match(`^([-./].*)?$|\.(txt|in|whl|tgz|tar\.gz|toml)$`, named)
	not option_argument(j)
	not networked
}

option_argument(j) if regex.match(`^(-r|-c|--requirement|--constraint|-w|--workspace|--filter|--prefix|-C|--group|--with|--without|--extra|-E|--only|-j|--jobs|--retry|--path)$`, input.command.argv[j - 1])

adding := {
	"npm": {"i", "install", "add", "update", "up", "upgrade", "in", "isntall"}, "pnpm": {"i", "install", "add", "update", "up"}, "yarn": {"add", "up", "upgrade"}, "bun": {"add", "i", "install", "update"},
	"pip": {"install", "download", "search", "wheel"}, "pip3": {"install", "download", "search", "wheel"}, "pipenv": {"install", "update"}, "poetry": {"add", "update"}, "uv": {"add"}, "pdm": {"add", "update"},
	"cargo": {"add", "binstall", "update"}, "composer": {"require", "update"}, "gem": {"install"}, "bundle": {"add"}, "go": {"get"}, "dotnet": {"add"}, "mix": {"deps.get"}, "dart": {"pub"}, "flutter": {"pub"}, "deno": {"add"}, "conda": {"install"},
}

deny contains lib.denial("code.package", sprintf("%s fetches packages, and there is no network", [input.command.program]), "use what the repository's lock files name") if {
	some word in array.slice(input.command.argv, 0, 2)
	word in {"binstall", "outdated", "dependency:get", "dependency:copy", "versions:display-dependency-updates", "search"}
	input.command.program in {"npm", "pnpm", "yarn", "mvn", "cargo", "bundle", "pip", "pip3", "composer"}
	not networked
}

deny contains lib.denial("code.package", "bundle update fetches packages, and there is no network", "use bundle exec with what is installed") if {
	input.command.program == "bundle"
	input.command.argv[0] == "update"
	not networked
}

deny contains lib.denial("code.package", sprintf("%s brings in a package by name", [word]), "use what the repository's lock files name") if {
	input.command.program in {"uv", "pnpm", "npx", "pipx", "hatch"}
	some word in input.command.argv
	regex.match(`^--(with|from|with-editable|with-requirements)(=|$)`, word)
	not networked
}

# METADATA
# title: Code given to an interpreter is written out
# custom:
#   rule: code.dynamic
#   match: ["python3 -c \"$X\"", "node -e \"$(cat x)\"", "python3 -c \"$(base64 -d <<< aGk=)\"", "perl -e \"$X\"", "node -p \"$X\""]
#   not_match: ["python3 -c 'print(1)'", "python3 -c 'import sys; print(sys.argv)' \"$x\"", "python3 scripts/x.py \"$x\""]
deny contains lib.denial("code.dynamic", sprintf("the code for %s is known only when it runs", [input.command.program]), "write the code out in single quotes") if {
	input.command.program in interpreters
	some o in input.command.options
	o.name in {"-c", "-e", "--eval", "-p", "--print", "-r"}
	not o.static
}

deny contains lib.denial("code.dynamic", sprintf("the code that %s starts an interpreter with is known only when it runs", [input.command.program]), "write the code out in single quotes") if {
	launching[input.command.program]
	not input.command.static
	some word in input.command.argv
	word in {"-c", "-e", "--eval", "-p", "--print"}
}

# METADATA
# title: Modules that fetch, publish, serve or hide code
# custom:
#   rule: code.module
#   match: ["python3 -m twine upload dist/*", "python3 -m telnetlib x", "coverage run -m http.server", "python3 -m pydoc -b", "ruby -run -e httpd .", "python3 setup.py upload", "python3 setup.py install", "perl -MLWP::Simple -e 1", "ruby -rsocket -e 1", "python3 -m runpy x"]
#   not_match: ["python3 -m pytest", "python3 -m pip install -e .", "python3 -m pip list", "python3 setup.py build_ext --inplace", "perl -MJSON::PP -e 1", "python3 -m json.tool x.json"]
deny contains lib.denial("code.module", sprintf("%s %s fetches, publishes, serves or hides code", [input.command.program, word]), "build, test and check what the repository holds") if {
	input.command.program in {"python3", "coverage", "pytest", "uv", "poetry", "trace"}
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-m"
	regex.match(`^(twine|flit|telnetlib|ftplib|poplib|imaplib|smtplib|nntplib|smtpd|http\.server|wsgiref.*|socketserver|webbrowser|pydoc|runpy|pty|code|idlelib.*|ensurepip|antigravity|turtledemo|SimpleHTTPServer|xmlrpc.*|asyncio|pip\._internal.*|easy_install|site|zipapp|venv|virtualenv)$`, word)
	not word == "venv"
}

deny contains lib.denial("code.package", "pip fetches from an address, and there is no network", "use pip install -e .") if {
	input.command.program == "python3"
	"pip" in input.command.argv
	some word in input.command.argv
	contains(word, "://")
	not networked
}

deny contains lib.denial("code.module", "a virtual environment is made in the workspace or under /tmp", "name such a folder") if {
	input.command.program == "python3"
	input.command.argv[0] == "-m"
	input.command.argv[1] in {"venv", "virtualenv"}
	some w in input.command.operands
	w.place in {"outside", "secret", "git", "home", "control"}
}

deny contains lib.denial("code.module", sprintf("setup.py %s publishes or installs", [word]), "use python3 setup.py build_ext --inplace, or pip install -e .") if {
	input.command.program == "python3"
	some i, word in input.command.argv
	word in {"upload", "register", "install", "bdist_wininst", "upload_docs", "easy_install", "alias", "saveopts", "setopt"}
	some j, script in input.command.argv
	j < i
	endswith(script, "setup.py")
}

deny contains lib.denial("code.module", sprintf("%s loads a module that reaches the network", [word]), "leave it out; where hosts were granted, use curl") if {
	input.command.program in {"perl", "ruby", "php", "lua"}
	some word in input.command.argv
	regex.match(`^-(M|m)?(r|M|m)?(LWP|IO::Socket|HTTP::|Net::|Socket|WWW::|socket|net/|open-uri|un$|drb|webrick)`, word)
}

deny contains lib.denial("code.package", "uv pip installs by name, and there is no network", "use uv sync --frozen") if {
	input.command.program == "uv"
	input.command.argv[0] == "pip"
	input.command.argv[1] in {"install", "compile", "download"}
	not networked
}

# pip through python -m is pip.
deny contains lib.denial("code.package", "pip fetches a package by name, and there is no network", "use pip install -e . or pip install -r requirements.txt") if {
	input.command.program == "python3"
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-m"
	word in {"pip", "pip3"}
	input.command.argv[i + 1] in {"install", "download", "wheel", "search", "config", "index"}
	some j, named in input.command.argv
	j > i + 1
	not regex.match(`^([-./].*)?$|\.(txt|in|whl|tgz|tar\.gz|toml)$`, named)
	not option_argument(j)
	not pip_fetches(i + 1)
}

pip_fetches(verb) if {
	networked
	input.command.argv[verb] in {"install", "download", "wheel"}
}

# METADATA
# title: Options that run a program, under whatever name
# custom:
#   rule: code.option
#   match: ["npm test --script-s=./x", "bazel test --run_under=sh //x", "mypy --python-exec ./x src", "pytest -pevil", "python3 -m pytest -p evil", "php -dauto_prepend_file=x a.php", "gotestsum --post-run-command 'sh x'", "ginkgo --after-run-hook sh", "cargo rustc -- -Clinker=./x", "gcc -fplug=./x a.c", "node --inspect=0.0.0.0 a.js", "prove --exe sh t", "cmake -DCMAKE_CXX_COMPILER=./x .", "pylint --init-h x src", "clang++ --gcc-toolchain=x a.cc", "javac -J-javaagent:x A.java"]
#   not_match: ["cargo rustc -- -Copt-level=3", "pytest -p no:cacheprovider", "python3 -m pytest -p xdist -n 2", "cmake -DCMAKE_BUILD_TYPE=Debug .", "java -Xmx1g A", "node --test-reporter=spec --test", "gotestsum -- ./..."]
deny contains lib.denial("code.option", sprintf("%s runs a program or loads code that the text does not show", [word]), "leave the option out") if {
	regex.match(concat("", ["(?m)", running_option]), joined)
	running
	some [_, word] in spoken
	regex.match(running_option, word)
	not harmless_option(word)
}

running_option := `^--?(script-s\w*|init-(s|h)\w*|init_hook|override-i\w*|past\w*|run_under|python-?exec\w*|python-?path|auto_prepend.*|post-run-command|raw-command|after-(run|suite)-hook|before-.*-hook|gcc-toolchain|J-?javaagent.*|J-agent.*|tx|exe|exec\w*|watch-?cmd|inspect\w*|host_jvm_args|launcher|runner|test-?runner|tool-?exec\w*|compiler-?launcher|wrapper|loader|experimental-default-config-file|unsafely\S*|allow-all|allow-run|allow-net|docker\S*|nix\S*|pre-?load|remote\S*|rpc\S*|server|listen|expose|tunnel|debug-?port|plugin-?path|load-path|require-?path|on-?error|on-?exit|trap|hook|callback|notify|shell-mode|npm-path|tcp-listen|install-types|disable-sandbox|scan|ui|api|clang|gcc\.\w+|with-compiler|doclet\w*|fpass-plugin|load|http\.proxy\w*|pre|docletpath|diagnose|share|publish-scan|cpu-profile-path|tls-\S*|redirect-warnings)(=|:|$)`

harmless_option(word) if {
	input.command.program in {"jest", "vitest", "npx"}
	regex.match(`^--(testRunner|runner)=(jest-circus.*|jest-jasmine2|node|threads|forks|vmThreads)$`, word)
}

harmless_option("--require-hashes")

harmless_option("--exec") if input.command.program == "ghc"

deny contains lib.denial("code.option", sprintf("%s loads a plugin by name", [word]), "leave the option out, or name a plugin of the repository in its configuration") if {
	input.command.program in {"pytest", "py.test", "python3", "coverage", "poetry", "uv", "tox"}
	some word in input.command.argv
	pytesting
	regex.match(`^-p[a-zA-Z]`, word)
	not regex.match(`^-pno:`, word)
}

pytesting if {
	some word in ({input.command.program} | {w | some w in input.command.argv})
	word in {"pytest", "py.test"}
}

deny contains lib.denial("code.option", "pytest loads a plugin by name", "leave the option out") if {
	not input.command.program in {"pytest", "py.test"}
	pytesting
	some i, "-p" in input.command.argv
	not regex.match(`^(no:[\w.]+|xdist|pytest_\w+|asyncio|randomly|cov|pytester)$`, input.command.argv[i + 1])
}

deny contains lib.denial("code.option", sprintf("%s names another program to run", [word]), "leave the setting to the repository") if {
	regex.match(concat("", ["(?m)", naming_option]), joined)
	running
	not client
	some word in input.command.argv
	regex.match(naming_option, word)
	not compiler_flag(word)
}

naming_option := `^-D(CMAKE_\w*(COMPILER|LINKER|LAUNCHER|PROGRAM|AR|RANLIB|TOOLCHAIN\w*)|exec|jvm|maven\.repo\.remote|java\.home|java\.rmi\S*|java\.security\S*|sun\S*|argLine|executable|script)(:\w+)?=|^-d(auto_|extension|zend_extension|disable_|open_basedir|allow_url)\S*|^-z$|^-Clinker|^-C$|^linker=|^(-J|-X)(javaagent|agent)\S*|^-XX:(HeapDumpPath|OnError|LogFile|Flags|ErrorFile|\+UnlockDiag)\S*|^-Xlog|^-Xloggc|^-Xbootclasspath|^-D(http|https|socks)\.?[pP]roxy|^-D\w*[uU]rl=|^-DshowPasswords|^-Dmaven\.compiler\.executable|^-O/|^-fplug\w*|^@.`

compiler_flag("-C") if not input.command.program in {"cargo", "rustc"}

# An argument file is a Java or compiler notion; elsewhere @x is a name.
compiler_flag(word) if {
	input.command.program == "rspec"
	startswith(word, "@")
}

compiler_flag(word) if {
	input.command.program in {"npm", "npx", "pnpm", "yarn"}
	startswith(word, "@")
}

compiler_flag("-C") if {
	some i, "-C" in input.command.argv
	not regex.match(`^(linker|link|ar|codegen)`, input.command.argv[i + 1])
}

# METADATA
# title: Only known subcommands of cargo; others are programs by name
# custom:
#   rule: cargo.subcommand
#   match: ["cargo evil-subcommand", "cargo watch -s x", "cargo flamegraph -c x"]
#   not_match: ["cargo test", "cargo clippy --all-targets", "cargo +nightly fmt --check", "cargo --offline check", "cargo nextest run"]
deny contains lib.denial("cargo.subcommand", sprintf("cargo %s is a program of its own", [word]), "use cargo's own subcommands, clippy, fmt, nextest, llvm-cov, deny or audit") if {
	input.command.program == "cargo"
	word := [w | some w in input.command.argv; not startswith(w, "-"); not startswith(w, "+"); not cargo_value(w)][0]
	not word in {
		"build", "b", "check", "c", "test", "t", "bench", "run", "r", "doc", "d", "clean", "clippy", "fmt", "fix", "tree", "metadata", "fetch", "generate-lockfile", "locate-project", "pkgid", "read-manifest", "rustc", "rustdoc", "verify-project", "version", "vendor", "package", "help", "report", "info",
		"nextest", "llvm-cov", "tarpaulin", "deny", "audit", "hack", "miri", "expand", "udeps", "machete", "outdated", "semver-checks", "public-api", "criterion", "insta", "mutants", "careful", "sort", "spellcheck", "geiger", "bloat", "asm", "fuzz", "xtask", "msrv", "minimal-versions", "all-features", "readme", "sqlx", "component", "leptos", "shear", "vet", "about", "make", "modules", "bloat", "license",
	}
}

cargo_value(word) if {
	some i, w in input.command.argv
	w == word
	input.command.argv[i - 1] in {"--config", "-C", "--color", "-Z", "--manifest-path", "--target-dir", "--jobs", "-j"}
}

# METADATA
# title: No address but this machine's
# custom:
#   rule: code.url
#   match: ["deno run -A https://203.0.113.9/x.ts", "go tool pprof http://203.0.113.9/debug/pprof/heap", "rails new x -m http://203.0.113.9/t.rb", "turbo run build --api=http://203.0.113.9", "npx vite --host", "vitest --host 0.0.0.0"]
#   not_match: ["npx wait-on http://localhost:3000", "pytest --base-url=http://127.0.0.1:8000", "python3 -c 'print(\"http://x.example\")'"]
deny contains lib.denial("code.url", sprintf("%s is an address, and there is no network", [word]), "use what the repository and the machine already hold") if {
	regex.match(`:(/|text/)`, joined)
	running
	some [_, word] in spoken
	regex.match(`(^|[=:@])(https?|ftp|ssh|git|data|file)(\+\w+)?:(//|/|text/)`, word)
	not regex.match(`^[^/]*://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^:]*)?$`, word)
	not client
}

deny contains lib.denial("code.url", sprintf("%s opens a server", [word]), "test without one, or on 127.0.0.1 from the repository's tests") if {
	regex.match(`--(host|bind|listen)|0\.0\.0\.0`, joined)
	running
	some [_, word] in spoken
	regex.match(`^(--host|--hostname|--bind|--listen)(=|$)|^0\.0\.0\.0`, word)
	not regex.match(`=(localhost|127\.0\.0\.1)$`, word)
}

# METADATA
# title: Verbs that reach a registry, make projects or serve
# custom:
#   rule: code.verb
#   match: ["npm view lodash", "npm ping", "pnpm self-update", "mvn archetype:generate", "mvn help:effective-settings", "golangci-lint custom", "rebar3 hex publish", "cabal install evil", "pip uninstall -y pip", "npx playwright install", "uv python install 3.13", "rails new x", "task -g x", "ctest -D Experimental"]
#   not_match: ["npm ls", "npm run view", "pnpm test", "mvn -o verify", "golangci-lint run", "cabal test", "pip list", "npx playwright test", "uv run pytest", "rails test", "task test", "ctest --test-dir build"]
deny contains lib.denial("code.verb", sprintf("%s %s reaches a registry, makes a project, serves or changes settings", [input.command.program, word]), "build, test and check what the repository holds") if {
	pattern := verbs[input.command.program]
	some i, word in array.slice(input.command.argv, 0, 3)
	regex.match(pattern, word)
	first(i)
}

# first holds for a word with nothing but options before it.
first(i) if {
	every j, word in array.slice(input.command.argv, 0, i) {
		j >= 0
		startswith(word, "-")
	}
}

verbs := {
	"npm": `^(audit|docs|view|info|show|v|ping|version|diff|repo|bugs|home|search|fund|completion|doctor|sbom|trust|undeprecate)$`, "pnpm": `^(self-update|server|setup|deploy|view|info|publish|patch|patch-commit|outdated|audit|update)$`, "yarn": `^(patch|patch-commit|info|dlx|up|version|audit|import|policies)$`,
	"mvn": `^(archetype|wrapper|help:effective-settings|versions|dependency:(get|copy|unpack|purge\S*)|deploy\S*|release|gpg|scm|nexus\S*)(:.*)?$|^org\.\S+:archetype`, "golangci-lint": `^(custom|migrate)$`, "rebar3": `^(hex|new|plugins|shell|upgrade)$`, "cabal": `^(install|upload|init|get|user-config)$`,
	"pip": `^(uninstall|config|cache|index|search|download|hash|debug)$`, "pip3": `^(uninstall|config|cache|index|search|download|hash|debug)$`, "uv": `^(python|init|tool|self|auth|cache)$`, "rails": `^(new|plugin|credentials|encrypted|console|server|db|runner|r|dev|app:.*)$`, "task": `^(-g|--global|--init|-w|--watch)$`,
	"ctest": `^(-D|-M|-T|--dashboard)$`, "composer": `^(diagnose|archive|browse|home|self-update|selfupdate|init|create-project|global|search|show-all|outdated|audit|update|remove)$`, "swift": `^(repl|sdk)$`, "dotnet": `^(new|nuget|tool|workload|user-secrets|dev-certs|publish|watch|add|remove|sln)$`, "deno": `^(install|publish|upgrade|repl|deploy|jupyter|serve|add)$`,
	"gradle": `^(init|wrapper|publish\S*|upload\S*)$`, "bun": `^(install|add|x|create|publish|upgrade|update|link|pm)$`, "flutter": `^(create|upgrade|channel|config|run|install|attach|drive|pub)$`, "go": `^(telemetry|bug)$`, "rake": `^(-e|-E|-p|-g|--execute\S*|--system|-r\S*|--require\S*)$`, "nx": `^(connect|migrate|release|login)$`, "turbo": `^(login|link|unlink|logout|daemon)$`,
	"poetry": `^(config|self|source|publish|init|new|shell|cache|env)$`, "bundle": `^(config|plugin|gem|open|console|init|inject|update|outdated|viz)$`, "conda": `.`, "mix": `^(hex\S*|archive\S*|escript\S*|local\S*|deps\.(get|update)|new)$`, "stack": `^(new|upload|upgrade|setup|ghci|repl|script)$`, "crystal": `^(init|play|i)$`, "zig": `^(fetch|init)$`,
}

deny contains lib.denial("code.verb", "playwright install fetches browsers", "use npx playwright test with what is installed") if {
	input.command.program == "npx"
	input.command.operands[0].value in {"playwright", "cypress", "puppeteer", "husky"}
	input.command.operands[1].value in {"install", "install-deps", "open", "codegen", "init"}
}

# METADATA
# title: php reads no settings from the command line
# custom:
#   rule: code.setting
#   match: ["php -d auto_prepend_file=/tmp/x a.php", "php -d extension=./x.so a.php", "vendor/bin/phpunit -d auto_prepend_file=x"]
#   not_match: ["php -d memory_limit=-1 vendor/bin/phpunit", "php -l a.php"]
deny contains lib.denial("code.setting", sprintf("%s loads code", [word]), "leave the setting out") if {
	contains(joined, "-d\n")
	running
	some i, word in input.command.argv
	input.command.argv[i - 1] == "-d"
	regex.match(`^(auto_|extension|zend_extension|disable_|open_basedir|allow_url|include_path|sys_temp|error_log|sendmail|opcache\.preload)`, word)
}

# METADATA
# title: One-liners do not reach the network
# custom:
#   rule: code.socket
#   retry: never
#   match: ["php -r 'fsockopen(\"203.0.113.9\",80);'", "perl -e 'use IO::Socket; 1'", "ruby -e 'require \"socket\"; TCPSocket.new(\"x\",1)'"]
#   not_match: ["perl -ne 'print if /socket/' a.log", "ruby -e 'puts 1'", "php -r 'echo 1;'"]
deny contains lib.denial("code.socket", "the code opens a connection that its text does not name", "leave the connection out; where hosts were granted, use curl") if {
	input.command.program in {"perl", "ruby", "php", "lua"}
	some word in input.command.argv
	regex.match(`fsockopen|stream_socket|curl_init|file_get_contents\(.https?:|IO::Socket|LWP::|HTTP::Tiny|Net::(HTTP|FTP|SSH|SMTP)|TCP(Socket|Server)|UDPSocket|open-uri|URI\.open|require .socket|Socket\.(tcp|new)`, word)
}

# METADATA
# title: No interpreter waits for its program
# custom:
#   rule: code.prompt
#   match: ["python3", "python3 -", "node -", "ruby -", "python3 /dev/stdin", "node", "php -"]
#   not_match: ["python3 - <<'EOF'\nprint(1)\nEOF", "python3 --version", "node --test", "python3 -m unittest", "php -v"]
deny contains lib.denial("code.prompt", sprintf("%s gets no program", [input.command.program]), "give the code in the text: -c, -e or a here-document") if {
	input.command.program in {"python3", "node", "ruby", "perl", "php", "lua", "deno", "bun", "Rscript", "julia"}
	not input.command.stdin_from in {"heredoc", "pipe", "file"}
	no_program
}

no_program if count(input.command.argv) == 0

no_program if input.command.operands[0].value in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}

# METADATA
# title: The Go command builds what the module names
# custom:
#   rule: go.elsewhere
#   match: ["go build -pkgdir /tmp/x ./...", "go work use /tmp/evil", "go mod edit -replace=golang.org/x/text=/tmp/evil"]
#   not_match: ["go build -o /tmp/x ./cmd/x", "go mod edit -json", "go test -coverprofile=/tmp/c.out ./..."]
deny contains lib.denial("go.elsewhere", sprintf("%s brings in packages from elsewhere", [word]), "leave it out") if {
	input.command.program == "go"
	some i, word in input.command.argv
	elsewhere(i, word)
}

elsewhere(_, word) if regex.match(`^-?-pkgdir`, word)

elsewhere(_, word) if regex.match(`^-?-replace=.*=(/|\.\./|~)`, word)

elsewhere(i, word) if {
	input.command.argv[0] == "work"
	i > 1
	regex.match(`^(/|~|\.\./)`, word)
}

# METADATA
# title: Argument files hide what is done
# custom:
#   rule: code.arguments
#   match: ["c++filt @/etc/shadow", "nm @x", "gcc @args a.c", "javac @/tmp/args"]
#   not_match: ["c++filt _Z1fv", "nm a.o", "npx @scope/lint ."]
deny contains lib.denial("code.arguments", sprintf("%s is a file of further words that nobody has seen", [word]), "write the words out") if {
	input.command.program in {"c++filt", "nm", "objdump", "readelf", "size", "strings", "ld", "ar", "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "java", "javadoc", "rustc", "msbuild", "dotnet", "csc"}
	some word in input.command.argv
	startswith(word, "@")
}

# METADATA
# title: rubocop and rspec load what the repository names
# custom:
#   rule: code.require
#   match: ["rubocop --format Evil::F --require=evil", "rspec --require=evil", "mocha --require evil"]
#   not_match: ["rubocop --require rubocop-rails", "rspec --require spec_helper", "mocha --require ts-node/register", "mocha --require ./test/setup.js", "rspec -r ./spec/x.rb"]
deny contains lib.denial("code.require", sprintf("%s is no file of the workspace and no known plugin", [value]), "require a file of the workspace") if {
	input.command.program in {"rubocop", "rspec", "mocha", "rake", "cucumber"}
	some i, word in input.command.argv
	split(word, "=")[0] == "--require"
	value := option_value(i, word)
	not regex.match(`^\.?/|^(rubocop-[\w-]+|spec_helper|rails_helper|test_helper|ts-node.*|@babel/register|tsx.*|esbuild-register|source-map-support.*|should|chai.*|jsdom-global.*|rspec.*|simplecov.*|[\w./-]+\.(rb|js|ts|mjs|cjs))$`, value)
}
