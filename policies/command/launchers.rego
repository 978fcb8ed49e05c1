# poetry run, bundle exec and similar launchers start another program, and the rules about
# that program do not see it. They may start known tools only.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Launchers start known tools only
# custom:
#   rule: code.launcher
#   match: [
#     "poetry run bash -c id", "bundle exec sh -c id", "uv run -- sh x", "yarn exec sh", "npx concurrently 'sh -c id'", "npx nodemon --exec sh",
#     "pnpm exec ssh x", "npm run env id", "npm --prefix . run env -- -S 'id 6'",
#     "stack exec -- sh -c id", "hatch run sh -c id", "tox exec -- sh", "npx cross-env PATH=. sh"
#   ]
#   not_match: [
#     "poetry run pytest", "bundle exec rspec", "uv run python -m pytest", "yarn exec tsc", "npx eslint .", "pnpm exec vitest run",
#     "npx playwright test", "poetry run mypy src", "npm run env", "npm run test:env", "npm run test -- env x"
#   ]
deny contains lib.denial("code.launcher", sprintf("%s must not start %s", [input.command.program, inner_program]), "start the tool by its own name") if {
	verb := launching[input.command.program]
	launcher := input.command.program
	some i, word in input.command.argv
	word in verb
	i <= 2
	inner_program := launched(i)
	not startable(launcher, inner_program)
}

deny contains lib.denial("code.launcher", "npm's script env starts the program that follows it", "start the tool by its own name") if {
	input.command.program == "npm"
	input.command.sub in {"run", "run-script", "rum", "urn"}
	input.command.operands[0].value == "env"
	input.command.argv[count(input.command.argv) - 1] != "env"
}

launching := {
	"poetry": {"run"},
	"uv": {"run"},
	"pdm": {"run"},
	"hatch": {"run"},
	"pipenv": {"run"},
	"bundle": {"exec"},
	"pnpm": {"exec", "dlx"},
	"yarn": {"exec", "dlx"},
	"npm": {"exec", "x"},
	"stack": {"exec"},
	"cabal": {"exec"},
	"tox": {"exec", "e"},
	"dotnet": {"exec"},
	"mix": {"run"},
	"opam": {"exec"},
	"dune": {"exec"},
}

launched(i) := last_part([word | some j, word in input.command.argv; j > i; not startswith(word, "-")][0])

last_part(word) := split(word, "/")[count(split(word, "/")) - 1]

startable(_, "") # only run time knows it, and it is decided then

startable(_, program) if program in lib.runners

startable(_, program) if program in {
	"python", "python3", "pytest", "tests", "test", "lint", "typecheck", "check", "format", "fmt", "types", "cov", "docs", "build",
}

startable(_, program) if regex.match(`^(python3?(\.\d+)?|.*\.(py|js|ts|mjs|rb|exs|dll)|.*:.*)$`, program)
