# Reviewers build, test and check. Verbs that publish, log in or install system-wide are
# denied, and so are targets and scripts with such names.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Commands must not publish, log in, deploy or install system-wide
# custom:
#   rule: code.publish
#   severity: medium
#   category: publishing
#   retry: never
#   match: [
#     "npm publish", "npm login", "cargo publish", "npm config set x y", "poetry publish", "dotnet nuget push x", "npm install -g x",
#     "yarn npm publish", "npm token list", "composer global require x", "cargo install x",
#     "bundle config set x y", "bundle config set --global path x", "bundle config set path /etc",
#     "npm config get x --global", "npm config get _authToken", "npm config get auth-token", "pip config list",
#     "npm set script-shell x", "npm pkg set scripts.test=id", "cargo login", "npm -s -s -s -s config set x y",
#     "npm --silent --json --fund false publish"
#   ]
#   not_match: [
#     "npm ci", "npm run build", "pip install -e .", "cargo build", "poetry run pytest", "npm ls", "npm config get registry", "npm config list",
#     "bundle config set --local path vendor/bundle"
#   ]
deny contains lib.denial(
	"code.publish",
	sprintf("%s %s publishes, logs in, installs from elsewhere or changes settings", [input.command.program, word]),
	"build, test and check the repository",
) if {
	some word in first_words
	some tool in {input.command.program, input.command.tool}
	word in publishing[tool]
	not setup_install
	not reads_settings
}

# reads_settings: a setting is printed that is no credential, npm prints all others, or bundler's settings of this
# directory say where and what it installs.
reads_settings if {
	input.command.program in {"npm", "pnpm", "yarn"}
	regex.match(`^config\nget\n[a-zA-Z]+(-[a-z]+)*$`, joined)
	not regex.match(`(?i)auth|token|pass|secret|key|cert|user|email`, joined)
}

reads_settings if {
	input.command.program == "npm"
	regex.match(`^config\n(list|ls)$`, joined)
}

reads_settings if {
	input.command.program == "bundle"
	regex.match(`^config\nset\n(--local\n)?(path|without|with|deployment|frozen|jobs|retry|clean)\n[\w:-]+(/[\w-]+)*$`, joined)
}

# npm root -g prints a directory.
reads_settings if {
	input.command.program == "npm"
	regex.match(`^(root|prefix)\n(-g|--global)$`, joined)
}

# npm init -y writes a package.json: with a word it would run a package.
reads_settings if {
	input.command.program in {"npm", "yarn"}
	regex.match(`^init\n(-y|--yes)$`, joined)
}

first_words contains word if some word in array.slice(input.command.argv, 0, 3)

first_words contains input.command.sub

node_publishing := {
	"publish", "unpublish", "login", "logout", "adduser", "token", "owner", "access", "deprecate", "dist-tag", "hook", "org", "team", "star", "profile",
	"set", "edit", "create", "init", "-g", "--global", "global", "dlx", "link", "set-script", "stars", "whoami", "npm", "plugin", "config",
}

publishing := {
	"npm": (node_publishing | {"explore"}),
	"pnpm": (node_publishing | {"env"}),
	"yarn": node_publishing,
	"cargo": {"publish", "login", "logout", "owner", "yank", "install", "uninstall", "search", "init", "new"},
	"poetry": {"publish", "config", "self", "source", "shell"},
	"uv": {"publish", "tool", "self", "x"},
	"hatch": {"publish", "config", "shell"},
	"pdm": {"publish", "config", "plugin"},
	"pipenv": {"shell"},
	"dotnet": {"nuget", "publish", "tool", "new", "dev-certs", "user-secrets", "workload"},
	"composer": {"global", "config", "exec", "create-project", "require", "self-update"},
	"bundle": {"config", "plugin", "console", "open", "gem", "add", "inject"},
	"mix": {"hex.publish", "archive.install", "escript.install"},
	"stack": {"upload"},
	"cabal": {"upload"},
	"swift": {"repl"},
	"rails": {"console", "dbconsole", "server", "c", "s"},
	"terraform": {"apply"},
	"deno": {"install", "publish", "upgrade", "deploy"},
	"bun": {"publish", "x", "upgrade", "create"},
	"pip3": {"config"},
	"opa": {"run"},
	"lerna": {"publish", "version", "exec"},
	"ng": {"deploy", "add", "serve"},
	"buf": {"push", "registry"},
	"php": {"-S", "-a"},
	"ruby": {"--server"},
	"helm": {"install"},
	"task": {"--init"},
}

# METADATA
# title: Targets that publish, deploy or install system-wide are denied
# custom:
#   rule: code.target
#   severity: medium
#   category: publishing
#   match: [
#     "make deploy", "./gradlew publish", "make install", "npm run deploy", "rake release", "sbt publish", "mvn site-deploy", "gradle uploadArchives",
#     "npx changeset publish", "just push", "npx netlify deploy"
#   ]
#   not_match: ["make test", "./gradlew test", "npm run build", "go test ./publish", "pytest tests/test_deploy.py", "make release-notes-check"]
deny contains lib.denial(
	"code.target",
	sprintf("%s %s publishes, deploys or installs", [input.command.program, word]),
	"build, test and check the repository",
) if {
	input.command.program in targeting
	some i, word in input.command.argv
	regex.match(publishing_target, word)
	not configuration(i)
}

publishing_target := concat("", [
	`^(--target=|--targets=|-t)?:?([\w-]+:)*(\w[\w-]*-)?([pP]ublish\w*|[dD]eploy\w*|site-deploy`,
	`|upload\w*|release|push|login|ship|promote|rollout|uninstall|install-global)(:[\w:-]+)?$`,
])

configuration(i) if {
	input.command.program == "cargo"
	input.command.argv[i] == "check-release" # of cargo semver-checks
}

configuration(i) if {
	i > 0
	input.command.argv[i - 1] in {
		"-c", "--configuration", "--config", "--profile", "-C", "-Doptimize", "-b", "--features", "-k", "-m", "--mode", "--env", "-run", "--test", "-t",
		"--grep", "-g",
	}
}

targeting := {
	"make", "gmake", "gradle", "gradlew", "mvn", "mvnw", "rake", "sbt", "npm", "pnpm", "yarn", "bun", "npx", "just", "task", "ant", "mix", "wasm-pack",
	"invoke", "nox", "tox", "dotnet", "cargo", "lerna", "nx", "turbo", "flutter", "swift", "hatch", "flit", "poetry", "pdm", "uv", "dune", "stack",
	"cabal", "crystal", "composer", "rails", "bundle", "gulp", "grunt", "./gradlew", "./mvnw",
}

deny contains lib.denial("code.target", sprintf("%s publishes, deploys or installs", [word]), "build, test and check the repository") if {
	input.command.place == "workspace"
	regex.match(`(^|/)(gradlew|mvnw|sbt|bin/rake|bin/rails|artisan|manage\.py)$`, input.command.written)
	some word in input.command.argv
	regex.match(`(?i)^:?([\w-]+:)*((git)?publish\w*|deploy\w*|site-deploy|upload\w*|release|push|wrapper)$`, word)
}
