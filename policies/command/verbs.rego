# Tools with many verbs may build, test and check. The verbs that reach a registry, create
# a project, open a server or change settings are listed by tool.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Verbs that reach a registry, create projects, serve or change settings are denied
# custom:
#   rule: code.verb
#   severity: medium
#   category: network
#   match: [
#     "npm view lodash", "npm ping", "bundle update", "mvn dependency:get -Dartifact=a:b:1", "pnpm self-update", "mvn archetype:generate",
#     "mvn help:effective-settings", "golangci-lint custom",
#     "rebar3 hex publish", "cabal install evil", "pip uninstall -y pip", "npx playwright install", "uv python install 3.13", "rails new x",
#     "task -g x", "ctest -D Experimental", "npm -s -s -s -s view lodash", "npm publ", "npm issues", "npm run-scr env id",
#     "bun --cwd . add evil", "bun exec 'curl x'", "gradle -p x init", "uv run golangci-lint custom"
#   ]
#   not_match: [
#     "npm ls", "npm run view", "pnpm test", "mvn -o verify", "golangci-lint run", "cabal test", "pip list", "npx playwright test", "uv run pytest",
#     "rails test", "task test", "ctest --test-dir build"
#   ]
deny contains lib.denial(
	"code.verb",
	sprintf("%s %s reaches a registry, creates a project, opens a server or changes settings", [input.command.program, word]),
	"build, test and check the repository",
) if {
	pattern := verbs[input.command.program]
	some word in verb_words
	regex.match(pattern, word)
	not setup_install
	not reads_settings
}

# What another launcher starts has verbs, too.
deny contains lib.denial(
	"code.verb",
	sprintf("%s %s reaches a registry, creates a project, opens a server or changes settings", [input.command.tool, word]),
	"build, test and check the repository",
) if {
	input.command.program in (object.keys(launching) | {"npx", "bunx", "pnpx"})
	input.command.tool != input.command.program
	some word in inner_words
	regex.match(verbs[input.command.tool], word)
	not setup_install
}

deny contains lib.denial("code.launcher", "hatch env run starts any program", "start the tool by its own name") if {
	input.command.program == "hatch"
	input.command.sub == "env"
	input.command.operands[0].value in {"run", "create", "remove", "prune"}
}

# npm reads each beginning of a verb, and has several names for one: those of other verbs are denied.
deny contains lib.denial(
	"code.verb",
	sprintf("npm %s %s", [input.command.sub, npm_why]),
	npm_instead,
) if {
	input.command.program == "npm"
	input.command.sub != ""
	not input.command.sub in npm_verbs
	not input.command.sub in node_publishing # which code.publish denies
}

npm_why := "asks a registry, which no command may" if {
	input.command.sub in npm_questions
} else := "is not a verb that the policy allows"

npm_instead := "look at what is installed: `npm ls`" if {
	input.command.sub in npm_questions
} else := "write the whole verb: `npm ci`, `npm test` or `npm run build`"

npm_questions := {"audit", "view", "info", "show", "v", "ping", "search", "s", "se", "find", "bugs", "docs", "repo", "fund", "sbom", "doctor"}

npm_verbs := {
	"ci", "clean-install", "install-clean", "ic", "install", "i", "add", "install-test", "it", "install-ci-test", "cit", "update", "up", "upgrade",
	"uninstall", "remove", "rm", "un", "r", "prune", "dedupe", "ddp", "find-dupes", "rebuild", "rb", "run", "run-script", "rum", "urn", "test", "tst", "t",
	"start", "stop", "restart", "exec", "x", "ls", "list", "ll", "la", "outdated", "explain", "why", "query", "pack", "pkg", "root", "prefix", "help",
	"help-search", "get", "cache", "shrinkwrap",
}

verb_words contains word if {
	some i, word in array.slice(input.command.argv, 0, 12)
	i < 1 + read_verb
	first(i)
}

# Of a tool whose options are known, the verb is read; of another, a word after an option may be the verb.
default read_verb := 12

read_verb := 0 if input.command.program in ((object.keys(launching) - {"stack", "cabal", "dotnet", "mix"}) | {"bun"})

inner_words contains input.command.sub

inner_words contains input.command.operands[0].value

verb_words contains input.command.sub if input.command.sub != ""

# first is true for a word that has only options before it, each with a value or without.
first(i) if {
	every j, word in array.slice(input.command.argv, 0, i) {
		is_option(j)
		not word in usual_verbs
	}
}

# is_option is true for the index of an option, and of a word that may be an option's value.
is_option(i) if startswith(input.command.argv[i], "-")

is_option(i) if startswith(input.command.argv[i - 1], "-")

usual_verbs := {"run", "test", "task", "build", "check", "exec", "fmt", "lint", "compile", "verify"}

verbs := {
	"pnpm": `^(self-update|server|setup|deploy|view|info|publish|patch|patch-commit|outdated|audit|update)$`,
	"yarn": `^(patch|patch-commit|info|dlx|up|version|audit|import|policies)$`,
	"mvn": concat("", [
		`^(archetype|wrapper|help:effective-settings|versions|dependency:(get|copy|unpack|purge\S*)`,
		`|deploy\S*|release|gpg|scm|nexus\S*)(:.*)?$|^org\.\S+:archetype`,
	]),
	"golangci-lint": `^(custom|migrate)$`,
	"rebar3": `^(hex|new|plugins|shell|upgrade)$`,
	"cabal": `^(install|upload|init|get|user-config)$`,
	"pip3": `^(uninstall|config|cache|index|hash|debug)$`,
	"uv": `^(python|init|tool|self|auth|cache)$`,
	"rails": `^(new|plugin|credentials|encrypted|console|server|db|runner|r|dev|app:.*)$`,
	"task": `^(-g|--global|--init|-w|--watch)$`,
	"ctest": `^(-D|-M|-T|--dashboard)$`,
	"composer": concat("", [
		`^(diagnose|archive|browse|home|self-update|selfupdate|init|create-project|global|search|show-all`,
		`|outdated|audit|update|remove)$`,
	]),
	"swift": `^(repl|sdk)$`,
	"dotnet": `^(new|nuget|tool|workload|user-secrets|dev-certs|publish|watch|add|remove|sln)$`,
	"deno": `^(install|publish|upgrade|repl|deploy|jupyter|serve|add)$`,
	"rye": `^(add|config|fetch|init|install|pin|publish|remove|self|sync|toolchain|tools|uninstall|use)$`,
	"pipx": `^(ensurepath|environment|(un)?inject|(re|un)?install\S*|interpreter|(un)?pin|runpip|upgrade\S*)$`,
	"gradle": `^(init|wrapper|publish\S*|upload\S*)$`,
	"bun": `^(install|i|add|a|x|create|c|publish|upgrade|update|link|unlink|remove|rm|patch|pm|exec|init|repl)$`,
	"hatch": `^(new|config|publish|self|shell)$`,
	"pdm": `^(config|fix|new|plugin|publish|self)$`,
	"pixi": concat("", [
		`^(add|auth|build|clean|config|exec|global|i|import|init|install|lock|project|publish|reinstall`,
		`|remove|rm|search|self-update|shell\S*|task|update|upgrade|upload|workspace|x)$`,
	]),
	"pipenv": `^(open|shell|upgrade|update)$`,
	"flutter": `^(create|upgrade|channel|config|run|install|attach|drive|pub)$`,
	"go": `^(telemetry|bug)$`,
	"rake": `^(-e|-E|-p|-g|--execute\S*|--system|-r\S*|--require\S*)$`,
	"nx": `^(connect|migrate|release|login)$`,
	"turbo": `^(login|link|unlink|logout|daemon)$`,
	"poetry": `^(config|self|source|publish|init|new|shell|cache|env)$`,
	"bundle": `^(config|plugin|gem|open|console|init|inject|update|outdated|viz)$`,
	"conda": `.`,
	"mix": `^(hex\S*|archive\S*|escript\S*|local\S*|deps\.(get|update)|new)$`,
	"stack": `^(new|upload|upgrade|setup|ghci|repl|script)$`,
	"crystal": `^(init|play|i)$`,
	"zig": `^(fetch|init)$`,
}
