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
#     "stack exec -- sh -c id", "hatch run sh -c id", "tox exec -- sh", "npx cross-env PATH=. sh", "uv --directory . --project . run bash -c id",
#     "uv run --group pytest bash -c id", "pnpm -C . --filter x -r exec curl x", "bundle e sh -c id", "tox -q -c . exec -- sh", "yarn workspace a bash -c id",
#     "yarn workspaces foreach -A run bash -c id", "pnpm recursive exec bash -c id", "pnpm psql -h x", "yarn run rsync a b::c"
#   ]
#   not_match: [
#     "poetry run pytest", "bundle exec rspec", "uv run python -m pytest", "yarn exec tsc", "npx eslint .", "pnpm exec vitest run",
#     "npx playwright test", "poetry run mypy src", "npm run env", "npm run test:env", "npm run test -- env x",
#     "uv run --group dev pytest -k run", "bundle exec rspec exec", "yarn workspace git test", "yarn workspace a run build",
#     "pnpm -r run build", "pnpm watch", "yarn install"
#   ]
deny contains lib.denial(
	"code.launcher",
	sprintf("%s must not start %s", [input.command.program, inner_program]),
	"start the tool by its own name",
) if {
	some inner_program in launched
	not startable(inner_program)
}

deny contains lib.denial("code.launcher", "npm's script env starts the program that follows it", "start the tool by its own name") if {
	input.command.program == "npm"
	input.command.sub in {"run", "run-script", "rum", "urn"}
	input.command.operands[0].value == "env"
	input.command.argv[count(input.command.argv) - 1] != "env"
}

# bun, pnpm and yarn start a program of PATH when no script has the name.
deny contains lib.denial(
	"code.launcher",
	sprintf("%s starts %s where no script has the name", [input.command.program, word]),
	"write the command itself, or run a script by another name",
) if {
	input.command.program in {"bun", "pnpm", "yarn"}
	some word in script_names
	word in foreign
}

script_names contains input.command.tool if not input.command.tool in {"bun", "pnpm", "yarn"}

script_names contains input.command.sub if input.command.program == "bun"

script_names contains input.command.operands[0].value if input.command.sub in {"run", "run-script"}

script_names contains word.value if {
	input.command.sub in {"workspace", "workspaces", "recursive", "multi", "m"}
	some i, word in input.command.operands
	workspace_name(i) == false
}

script_names contains word if {
	input.command.tool in {"workspace", "workspaces", "recursive", "multi", "m"}
	some i, word in input.command.argv
	workspace_name(i) == false
}

# workspace_name is true for the operand that names a workspace: yarn workspace NAME SCRIPT.
default workspace_name(_) := false

workspace_name(0) if input.command.sub == "workspace"

# foreign are programs that no script of a repository is called, and that start others, reach the
# network or change files by their words.
foreign := (((object.keys(lib.refused) - script_like) | lib.judged) | lib.wrappers) | {
	"cp", "mv", "rm", "ln", "chmod", "perl", "ruby", "php",
}

script_like := {
	"at", "batch", "host", "http", "https", "hub", "ip", "links", "mail", "screen", "script", "source", "watch",
}

launching := {
	"poetry": {"run"},
	"uv": {"run"},
	"pdm": {"run"},
	"hatch": {"run"},
	"pipenv": {"run"},
	"bundle": {"exec", "exe", "ex", "e"}, # it reads beginnings of its verbs
	"pnpm": {"exec", "dlx"},
	"yarn": {"exec", "dlx"},
	"npm": {"exec", "x"},
	"stack": {"exec"},
	"cabal": {"exec", "v1-exec", "v2-exec", "new-exec"},
	"tox": {"exec", "e"},
	"dotnet": {"exec"},
	"mix": {"run"},
	"opam": {"exec", "exe", "ex"},
	"dune": {"exec", "exe", "ex"},
}

# launched are the programs that a launcher starts. Of a launcher whose options are known it is the tool that reads
# the words.
launched contains input.command.tool if {
	input.command.sub in launching[input.command.program]
	input.command.tool != input.command.program
}

# Of another one, it is the word after the verb.
launched contains last_part(word) if {
	input.command.program in {"stack", "cabal", "tox", "dotnet", "mix", "opam", "dune"}
	verb := [i | some i, word in input.command.argv; word in launching[input.command.program]][0]
	word := [after | some j, after in input.command.argv; j > verb; not startswith(after, "-")][0]
}

last_part(word) := split(word, "/")[count(split(word, "/")) - 1]

startable(program) if program in lib.runners

startable(program) if program in {
	"python", "python3", "pytest", "tests", "test", "lint", "typecheck", "check", "format", "fmt", "types", "cov", "docs", "build",
}

startable(program) if regex.match(`^(python3?(\.\d+)?|.*\.(py|js|ts|mjs|rb|exs|dll)|.*:.*)$`, program)
