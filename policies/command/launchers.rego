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

script_names contains word if {
	input.command.program == "bun"
	some word in bun_words
}

# bun's options are not listed: each word before the first that is none of bun's own verbs may be what it runs.
bun_words contains input.command.argv[0]

bun_words contains word if {
	some i, word in input.command.argv
	i > 0
	every j, before in array.slice(input.command.argv, 0, i) { bun_option(j, before) }
}

bun_option(_, word) if startswith(word, "-")

bun_option(_, "run")

bun_option(j, _) if startswith(input.command.argv[j - 1], "-")

script_names contains input.command.operands[0].value if input.command.sub in {"run", "run-script"}

# yarn workspace NAME SCRIPT
script_names contains input.command.operands[1].value if input.command.sub == "workspace"

# yarn workspaces foreach -A run SCRIPT, pnpm recursive exec PROGRAM
script_names contains word if {
	some verb in {"workspaces", "recursive", "multi", "m"}
	verb in {input.command.sub, input.command.tool}
	run := [i | some i, word in input.command.argv; word in {"run", "exec"}][0]
	word := [after | some j, after in input.command.argv; j > run; not startswith(after, "-")][0]
}

# foreign are programs that no script of a repository is called, and that start others, reach the
# network or change files by their words.
foreign := ((((object.keys(lib.refused) | lib.judged) | lib.wrappers) | lib.changers) | {"perl", "ruby", "php", "uniq"}) - script_like

script_like := {
	".", "at", "batch", "exec", "host", "http", "https", "hub", "init", "install", "ip", "links", "mail", "patch", "screen", "script", "source", "split", "time",
	"watch", "zip",
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
	"mix": {"run", "cmd"},
	"opam": {"exec", "exe", "ex"},
	"dune": {"exec", "exe", "ex"},
}

# launched are the programs that a launcher starts. Of a launcher whose options are known it is the tool that reads
# the words.
launched contains input.command.tool if {
	some i, word in input.command.argv
	word in launching[input.command.program]
	first(i)
	input.command.tool != input.command.program
}

# Of another one, it is the word after -- or, without that, each word that may be it: one that has only options and
# their values between the verb and itself.
launched contains last_part(input.command.argv[i]) if {
	open_launcher
	not launches_after_dashes
	some i, _ in input.command.argv
	i > launching_verb
	between := array.slice(input.command.argv, launching_verb, i)
	every j, _ in between { before_program(launching_verb + j) }
	not startswith(input.command.argv[i], "-")
}

launched contains last_part(input.command.argv[i + 1]) if {
	open_launcher
	i := [i | some i, word in input.command.argv; i > launching_verb; word == "--"][0]
}

open_launcher if input.command.program in {"stack", "cabal", "tox", "dotnet", "mix", "opam", "dune"}

launching_verb := [i | some i, word in input.command.argv; word in launching[input.command.program]][0]

launches_after_dashes if {
	some i, word in input.command.argv
	i > launching_verb
	word == "--"
}

before_program(i) if i == launching_verb

before_program(i) if startswith(input.command.argv[i], "-")

before_program(i) if startswith(input.command.argv[i - 1], "-")

# A launcher may start another one, which is read only as far as its own tool.
deny contains lib.denial(
	"code.launcher",
	sprintf("%s must not start %s by another launcher", [input.command.program, word]),
	"start the tool by its own name",
) if {
	input.command.program in (object.keys(launching) | {"npx", "bunx", "pnpx"})
	input.command.tool != input.command.program
	input.command.tool in (object.keys(launching) | {"npx", "bunx", "pnpx", "bun", "valgrind"})
	some word in input.command.argv
	word in ((foreign - {"node"}) | {"valgrind"})
}

last_part(word) := split(word, "/")[count(split(word, "/")) - 1]

startable(program) if program in lib.runners

startable(program) if program in {
	"python", "python3", "pytest", "tests", "test", "lint", "typecheck", "check", "format", "fmt", "types", "cov", "docs", "build",
}

startable(program) if regex.match(`^(python3?(\.\d+)?|.*\.(py|js|ts|mjs|rb|exs|dll))$`, program)

# hatch run ENVIRONMENT:PROGRAM, poetry run GROUP:SCRIPT
startable(program) if {
	contains(program, ":")
	parts := split(program, ":")
	not parts[count(parts) - 1] in foreign
}
