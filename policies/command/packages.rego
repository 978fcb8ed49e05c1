# Packages come from lock files, which a reviewer can read. A package that a command names
# is not reviewed and, without granted hosts, cannot be fetched.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Packages come from the repository's lock files, not by name
# custom:
#   rule: code.package
#   severity: medium
#   category: network
#   match: [
#     "npm i evil", "npm install left-pad", "pip install evil", "python3 -m pip install evil", "yarn add evil", "pnpm add evil", "cargo add x",
#     "cargo binstall x", "uv add x", "poetry add x", "bun add x", "uv run --with evil python -c 1", "pipenv install evil", "go get example.com/x",
#     "npm -s -s -s install evil", "python3 -Wd -mpip install evil",
#     "poetry run pip install evil"
#   ]
#   not_match: [
#     "npm ci", "npm install", "pip install -e .", "pip install -r requirements.txt", "poetry install", "bundle install --local", "uv sync --frozen",
#     "pip install --no-deps -e .", "pip install .", "python3 -m pip install -e '.[dev]'"
#   ]
deny contains lib.denial(
	"code.package",
	sprintf("%s fetches a package by name, and there is no network", [installer(input.command.program)]),
	package_instead,
) if {
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

deny contains lib.denial(
	"code.package",
	sprintf("%s fetches a package by name, and there is no network", [installer(input.command.tool)]),
	package_instead,
) if {
	input.command.sub in adding[input.command.tool]
	some w in input.command.operands
	w.static
	not regex.match(`^([-./].*)?$|\.(txt|in|whl|tgz|tar\.gz|toml)$`, w.value)
	not networked
}

installer(name) := "pip" if {
	name == "pip3"
} else := name

package_instead := sprintf("install what the repository's own files name: `%s`, or `%s install` if it has no lock file", [
	installs[input.command.program],
	input.command.program,
]) if {
	input.command.program in {"npm", "pnpm"}
} else := sprintf("install what the repository's own files name: `%s`", [installs[input.command.program]]) if {
	installs[input.command.program]
} else := sprintf("install what the repository's own files name: `%s`", [installs[input.command.tool]]) if {
	installs[input.command.tool]
} else := "install what the repository's own files name"

installs := {
	"npm": "npm ci", "pnpm": "pnpm install --frozen-lockfile", "yarn": "yarn install --frozen-lockfile", "pip3": "pip install -r requirements.txt",
	"poetry": "poetry install", "uv": "uv sync --frozen", "cargo": "cargo fetch", "composer": "composer install",
	"gem": "bundle install", "bundle": "bundle install", "go": "go mod download", "dotnet": "dotnet restore", "mvn": "mvn dependency:go-offline",
}

option_argument(j) if regex.match(package_option_with_value, input.command.argv[j - 1])

package_option_with_value := concat("", [
	`^(-r|-c|--requirement|--constraint|-w|--workspace|--filter|--prefix|-C|--group|--with|--without`,
	`|--extra|-E|--only|-j|--jobs|--retry|--path)$`,
])

adding := {
	"npm": {"i", "install", "add", "update", "up", "upgrade", "in", "isntall"},
	"pnpm": {"i", "install", "add", "update", "up"},
	"yarn": {"add", "up", "upgrade"},
	"bun": {"add", "i", "install", "update"},
	"pip3": {"install", "download", "search", "wheel"},
	"pipenv": {"install", "update"},
	"poetry": {"add", "update"},
	"uv": {"add"},
	"pdm": {"add", "update"},
	"cargo": {"add", "binstall", "update"},
	"composer": {"require", "update"},
	"gem": {"install"},
	"bundle": {"add"},
	"go": {"get"},
	"dotnet": {"add"},
	"mix": {"deps.get"},
	"dart": {"pub"},
	"flutter": {"pub"},
	"deno": {"add"},
	"conda": {"install"},
}

deny contains lib.denial("code.package", sprintf("%s adds a package by name", [word]), package_instead) if {
	input.command.program in {"uv", "pnpm", "npx", "pipx", "hatch"}
	some i, word in input.command.argv
	regex.match(`^--(with|from|with-editable|with-requirements)(=|$)`, word)
	not of_tool(i)
	not networked
}

# of_tool is true for the words behind the name of the tool that npx or uv run starts, which are that tool's.
of_tool(i) if {
	input.command.tool != input.command.program
	some j, word in array.slice(input.command.argv, 0, i)
	word == input.command.tool
	every before in array.slice(input.command.argv, 0, j) { before in {"run", "exec", "--no-install"} }
}
