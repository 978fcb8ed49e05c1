# The set-up that the maintainer configured or fumehood detected may install the
# repository's dependencies with the package manager that its lock file needs. The texts
# are listed word by word, and a proposer may not use them.
package fumehood.command

# METADATA
# title: Set-up may install with corepack, a pinned pnpm, bun, and the commands of data.registries
# description: Only in phase setup, for commands that do not come from a proposer.
# custom:
#   rule: setup.install
#   not_match: [
#     "corepack enable --install-directory .fumehood/bin", "corepack pnpm install --frozen-lockfile",
#     "npx --yes pnpm@9.1.0 install --frozen-lockfile", "bun install --frozen-lockfile", "dart pub get --enforce-lockfile",
#     "deno install --frozen", "mix local.hex --force --if-missing", "pixi install --frozen"
#   ]
allow contains {"rule": "setup.install"} if {
	input.command.place in found
	setup_install
}

# METADATA
# title: Set-up may start the dependencies' installation scripts
# custom:
#   rule: grant.setup
#   not_grants: ["ls"]
exec contains {"rule": "grant.setup", "kind": "built"} if {
	input.command.place in found
	setup_install
	input.command.argv[0] != "enable"
}

setup_install if {
	input.proposal.origin == "setup"
	input.proposal.phase == "setup"
	input.command.static
	setup_words[input.command.program]
}

setup_words["corepack"] if input.command.argv in {
	["enable", "--install-directory", ".fumehood/bin"],
	["pnpm", "install"],
	["pnpm", "install", "--frozen-lockfile"],
	["yarn", "install"],
	["yarn", "install", "--immutable"],
	["yarn", "install", "--frozen-lockfile"],
	["yarn", "install", "--non-interactive"],
	["yarn", "install", "--non-interactive", "--frozen-lockfile"],
}

setup_words["npm"] if {
	count(input.command.argv) == 9
	array.slice(input.command.argv, 0, 8) == [
		"install", "--prefix", ".fumehood/npm", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts",
	]
	regex.match(`^(pnpm|yarn|@yarnpkg/cli-dist)@\d+(\.\d+\.\d+(-[\w.]+)?)?$`, input.command.argv[8])
}

setup_words["bun"] if input.command.argv == ["install", "--frozen-lockfile"]

# Those of data.registries.
setup_words[program] if {
	some installer in data.registries[_].install
	some words in array.concat(object.get(installer, "locked", []), installer.unlocked)
	words == array.concat([input.command.program], input.command.argv)
	program := words[0]
}

setup_words["npx"] if {
	count(input.command.argv) == 4
	input.command.argv[0] in {"--yes", "-y"}
	regex.match(`^pnpm@\d+\.\d+\.\d+(-[\w.]+)?$`, input.command.argv[1])
	array.slice(input.command.argv, 2, 4) == ["install", "--frozen-lockfile"]
}

setup_words["npx"] if {
	count(input.command.argv) == 4
	input.command.argv[0] in {"--yes", "-y"}
	regex.match(`^yarn@1\.\d+\.\d+$`, input.command.argv[1])
	array.slice(input.command.argv, 2, 4) == ["install", "--frozen-lockfile"]
}
