# poetry run, bundle exec and similar launchers start another program, and the rules about
# that program do not see it. They may start known tools only.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Launchers start known tools only
# custom:
#   rule: code.launcher
#   severity: medium
#   category: code
#   match: [
#     "poetry run bash -c id", "bundle exec sh -c id", "uv run -- sh x", "yarn exec sh", "npx concurrently 'sh -c id'", "npx nodemon --exec sh",
#     "pnpm exec ssh x", "npm run env id", "npm --prefix . run env -- -S 'id 6'",
#     "stack exec -- sh -c id", "hatch run sh -c id", "tox exec -- sh", "npx cross-env PATH=. sh", "uv --directory . --project . run bash -c id",
#     "uv run --group pytest bash -c id", "pnpm -C . --filter x -r exec curl x", "bundle e sh -c id", "tox -q -c . exec -- sh", "yarn workspace a bash -c id",
#     "yarn workspaces foreach -A run bash -c id", "pnpm recursive exec bash -c id", "pnpm psql -h x", "yarn run rsync a b::c",
#     "pnpm exec /tmp/x", "bundle exec git push", "npm exec evil", "npm exec", "uv run git config x y", "npx evil --no-install", "npx --no-install=false evil",
#     "npx --no-install --yes evil", "npx --no-install exec-sh curl", "hatch run x:bash", "npx --no-install github:evil/x"
#   ]
#   not_match: [
#     "poetry run pytest", "bundle exec rspec", "uv run python -m pytest", "yarn exec tsc", "npx eslint .", "pnpm exec vitest run",
#     "npx playwright test", "poetry run mypy src", "npm run env", "npm run test:env", "npm run test -- env x",
#     "uv run --group dev pytest -k run", "uv run pytest -k npx", "bundle exec rspec exec", "yarn workspace git test", "yarn workspace a run build",
#     "pnpm -r run build", "pnpm watch", "yarn install", "npx --no-install acorn --version", "pnpm exec acorn", "npm exec -- eslint .",
#     "bundle exec brakeman -q", "uv run alembic heads", "npm exec --no -- tinypool"
#   ]
deny contains lib.denial(
	"code.launcher",
	sprintf("%s %s %s", [input.command.program, why_not_started(inner_program), inner_program]),
	launched_instead(inner_program),
) if {
	some inner_program in launched
	not startable(inner_program)
}

why_not_started(name) := "would look in a registry for" if {
	fetching
	starts_nothing_else(name)
} else := "must not start"

launched_instead(name) := sprintf("start it only if it is installed: `npx --no-install %s`", [name]) if {
	fetching
	starts_nothing_else(name)
	npx_written(name)
} else := "write the variables before the command, as in `NODE_ENV=test npm test`" if {
	name in env_setters
} else := "start a test, build or check tool of the repository by its own name"

# env_setters set the variables of a file, which can control loaders and tools, and start what follows.
env_setters := {"dotenv", "dotenv-cli", "dotenvx", "env-cmd", "cross-env", "cross-env-shell"}

# A tool that the repository installed may be started by a launcher that cannot fetch it. It could be started by its
# path as well. It writes no control files (option.place), and its words name no programs.
deny contains lib.denial(
	"code.launcher",
	sprintf("%s may start %s, which its words name", [name, foreign_words[0]]),
	"write the command itself",
) if {
	some name in (launched | npx_launched)
	not name in foreign # denied by its name
	takes_any_words(name)
	count(foreign_words) > 0
}

deny contains lib.denial(
	"code.launcher",
	sprintf("%s runs the text in %s", [name, word]),
	"write the code to a file, and run the file",
) if {
	some name in (launched | npx_launched)
	takes_any_words(name)
	not name in env_setters
	some word in input.command.argv
	regex.match(`^(-e|-pe|--(eval|exec|print|call|command|cmd|on[A-Z]\w*))(=.*)?$`, word)
}

npx_launched contains input.command.tool if {
	input.command.program in npx_like
	input.command.tool != input.command.program
}

# takes_any_words is true for tools whose words are not known, and for those that start what their words name.
takes_any_words(name) if not name in lib.runners

takes_any_words(name) if name in word_starters

# foreign_words are the names in the words of a launcher that are those of programs.
foreign_words := [name |
	some word in input.command.argv
	word != input.command.sub
	some part in regex.split("[\\s;&|()`'\"]+", word)
	name := last_part(part)
	name in foreign
]

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
	every j in [j | some j, before in array.slice(input.command.argv, 0, i); before != "run"] { is_option(j) }
}

script_names contains input.command.operands[0].value if input.command.sub in {"run", "run-script"}

# yarn workspace NAME SCRIPT, yarn workspace NAME exec PROGRAM
script_names contains input.command.operands[1].value if input.command.sub == "workspace"

script_names contains input.command.operands[2].value if {
	input.command.sub == "workspace"
	input.command.operands[1].value in {"exec", "run"}
}

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
	"pixi": {"run"},
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
	"pipx": {"run"},
	"rye": {"run"},
	"opam": {"exec", "exe", "ex"},
	"dune": {"exec", "exe", "ex"},
}

# launched are the programs that a launcher starts. Of a launcher whose options are known it is the tool that reads
# the words.
launched contains input.command.tool if {
	some word in input.command.argv # an option's value may be before it, and the tool may have a subcommand itself
	word in launching[input.command.program]
	input.command.tool != input.command.program
	not names_script_first
}

launched contains input.command.tool if {
	input.command.program == "uvx"
	input.command.tool != "uvx"
}

# names_script_first is true for yarn SCRIPT WORDS.
names_script_first if {
	input.command.program in {"pnpm", "yarn"}
	input.command.argv[0] == input.command.tool
	not input.command.tool in launching[input.command.program]
}

# npm exec alone starts a shell.
launched contains "a shell" if {
	input.command.program == "npm"
	input.command.sub in {"exec", "x"}
	input.command.tool == "npm"
}

# Of another one, it is the word after -- or, without that, each word that may be it: one that has only options and
# their values between the verb and itself.
launched contains last_part(input.command.argv[i]) if {
	open_launcher
	not launches_after_dashes
	some i, _ in input.command.argv
	i > launching_verb
	between := array.slice(input.command.argv, launching_verb + 1, i)
	every j, _ in between { is_option((launching_verb + 1) + j) }
	not startswith(input.command.argv[i], "-")
	not evaluated(i)
}

# evaluated is true for the code of mix run -e, which elixir runs.
evaluated(i) if {
	input.command.program == "mix"
	input.command.argv[i - 1] in {"-e", "--eval"}
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

# A launcher may start another one, which is read only as far as its own tool.
deny contains lib.denial(
	"code.launcher",
	sprintf("%s must not start %s by another launcher", [input.command.program, word]),
	"start the tool by its own name",
) if {
	input.command.program in (object.keys(launching) | npx_like)
	input.command.tool != input.command.program
	input.command.tool in ((object.keys(launching) | npx_like) | {"bun", "valgrind"})
	some word in input.command.argv
	word in ((foreign - {"node"}) | {"valgrind"})
}

# The one that is started may fetch.
deny contains lib.denial(
	"code.launcher",
	sprintf("%s must not start %s, which may fetch what it starts", [input.command.program, word]),
	"start the tool by its own name",
) if {
	input.command.program in (object.keys(launching) | npx_like)
	not starts_no_words
	some word in input.command.argv
	last_part(word) in fetchers_of_tools
}

# starts_no_words is true if the launcher starts a known tool that starts none of its words.
starts_no_words if {
	input.command.tool in lib.runners
	not input.command.tool in (((object.keys(launching) | npx_like) | word_starters) | {"bun", "valgrind", "tox", "nox"})
}

fetchers_of_tools := {"npx", "bunx", "pnpx", "uvx", "pipx"}

deny contains lib.denial(
	"code.launcher",
	sprintf("%s must not start %s by another launcher", [input.command.program, word]),
	"start the tool by its own name",
) if {
	input.command.program in (object.keys(launching) | npx_like)
	some i, word in input.command.argv
	i < count(input.command.argv) - 1
	word in {"npm", "pnpm", "yarn", "uv", "bun"}
	input.command.argv[i + 1] in {"exec", "x", "dlx", "pip", "tool", "add", "install", "i", "create", "init", "publish"}
}

last_part(word) := split(word, "/")[count(split(word, "/")) - 1]

startable(name) if {
	name in lib.runners
	not path_to(name)
}

startable(name) if name in {
	"python", "python3", "pytest", "tests", "test", "lint", "typecheck", "check", "format", "fmt", "types", "cov", "docs", "build",
}

startable(name) if regex.match(`^(python3?(\.\d+)?|.*\.(py|js|ts|mjs|rb|exs|dll))$`, name)

# hatch run ENVIRONMENT:SCRIPT
startable(name) if {
	not input.command.program in {"npm", "pnpm", "yarn"}
	regex.match(`^[\w.-]+:[\w.-]+$`, name)
	not split(name, ":")[1] in foreign
}

startable(name) if {
	input.command.program == "npm"
	npx_tool(name)
}

startable(name) if {
	not fetching
	starts_nothing_else(name)
}

starts_nothing_else(name) if {
	name == input.command.tool
	regex.match(`^[a-zA-Z_][\w.+-]*$`, name)
	not name in lib.programs
	not lib.refused[name]
	not name in (word_starters | outward_tools)
	not regex.match(`^(create|init)-`, name)
	not name in browsers
	not path_to(name)
}

# path_to is true if a word names the tool by a path or an address, and not as an installed one.
path_to(name) if {
	some word in input.command.argv
	regex.match(`^.*[/:].*$`, word)
	split(last_part(word), "@")[0] == name
	not regex.match(installed_path, word)
}

installed_path := concat("", [
	`^(@[\w.-]+/[\w.-]+(@[\w.-]+)?`,
	`|(\./)?([\w-][\w.-]*/)*(node_modules/\.bin|vendor/bin|\.?venv/bin|env/bin)/[\w.-]+)$`,
])

npx_like := {"npx", "bunx", "pnpx", "uvx"}

# fetching is true if the launcher may fetch what the repository does not have.
fetching if {
	input.command.program in {"npx", "bunx"}
	not installed_only(0)
}

fetching if input.command.program in {"pnpx", "uvx", "pipx"}

fetching if {
	input.command.program == "npm"
	not installed_only(1)
}

fetching if input.command.sub == "dlx"

# installed_only is true if npm's option for that is the word at i, directly before the tool's name or "--". Behind the name
# it is the tool's own, and --yes or =false would undo it.
installed_only(i) if {
	input.command.argv[i] in {"--no", "--no-install"}
	tool_at(i + 1)
}

tool_at(i) if named_tool(input.command.argv[i])

tool_at(i) if {
	input.command.argv[i] == "--"
	named_tool(input.command.argv[i + 1])
}

named_tool(word) if regex.match(`^(@[\w.-]+/)?[a-zA-Z_][\w.+-]*$`, word)

npx_written(name) if {
	input.command.program in {"npx", "npm"}
	name == input.command.tool
	name in input.command.argv
}

# word_starters start what their words name.
word_starters := {
	"aws-vault", "babel-node", "better-npm-run", "bnr", "c8", "chamber", "chokidar", "chokidar-cli", "concurrently", "cross-env",
	"cross-env-shell", "cross-spawn", "cross-spawn-cli", "doppler", "dotenv", "dotenv-cli", "dotenv-run-script", "dotenvx", "entr", "env-cmd",
	"envconsul", "esno", "exec-sh", "execa-cli", "foreman", "forever", "honcho", "husky", "if-env", "infisical", "invoke", "jiti", "lerna", "na",
	"nf", "ni", "nlx", "nodemon", "npm-run-all", "npm-run-all2", "nr", "nun", "nx", "nyc", "onchange", "op", "per-env", "pm2", "pm2-runtime",
	"run-p", "run-s", "run-script-os", "shx", "sops", "start-server-and-test", "supervisord", "teller", "tsc-watch", "turbo", "wait-on",
	"watchexec", "watchmedo", "wireit", "with-env", "wsrun", "zx",
}

# outward_tools fetch, publish, serve, remove files or change settings.
outward_tools := {
	"amplify", "ansible-console", "ansible-galaxy", "ansible-vault", "appcenter", "apprise", "argos", "artillery", "auto", "aws", "awscli", "az",
	"b2", "bore", "bpython", "browser-sync", "bugsnag-cli", "bumpp", "cap", "capistrano", "cc-test-reporter",
	"cfn", "chromatic", "circusd", "clasp", "clearml", "cloudflared", "cocoapods", "codacy-coverage-reporter", "code-push",
	"codecov", "copyfiles", "coveralls", "cpy", "cpy-cli", "create-next-app", "create-react-app", "create-vite", "curlie",
	"datadog-ci", "degit", "del", "del-cli", "deliver", "doctl", "eas", "eas-cli", "easy_install", "fab",
	"fastlane", "firebase", "fkill", "flit", "flyctl", "fullrelease", "gallery-dl", "gcloud", "gdown", "gh-pages", "giget", "glab",
	"gsutil", "guard", "happo", "heroku", "hf", "http", "http-server", "httpie", "https", "hub", "huggingface-cli", "ia",
	"instaloader", "json-server", "jsr", "kaggle", "kamal", "lhci", "linode-cli", "live-server", "loadtest", "localtunnel",
	"lt", "mitmdump", "mitmproxy", "mlflow", "mycli", "ncu", "neptune", "netlify", "newrelic", "ngrok", "now", "np",
	"npm-check-updates", "nuclei", "nx-cloud", "oci", "osf", "ovsx", "percy", "pgcli", "pilot", "pod", "postrelease", "prerelease",
	"pulumi", "rclone", "reg-suit", "release", "release-it", "release-please", "rollbar-cli", "runpod", "s3cmd", "s4cmd", "salt", "salt-call",
	"semantic-release", "semantic-release-cli", "sentry", "sentry-cli", "serve", "simple-git-hooks", "slack",
	"snyk", "speedtest", "speedtest-cli", "spotdl", "spring", "standard-version", "streamlink", "surge", "telegram-send",
	"tfx", "tiged", "transformers-cli", "tunnelmole", "twine", "untun", "vercel", "verdaccio", "vsce", "wandb", "web-ext", "webtorrent",
	"wscat", "xh", "xonsh", "yo", "you-get", "youtube-dl", "yt-dlp", "zenodo_get", "zest.releaser", "zrok",
}
