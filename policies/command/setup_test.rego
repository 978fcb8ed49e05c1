package fumehood.command

# by_setup is the input for a text of the set-up; origin and phase are those of the proposal.
by_setup(text, origin, phase) := object.union(fumehood.parse_with(text, {}), {"proposal": {"origin": origin, "phase": phase}})

setup_texts := {
	"corepack enable --install-directory .fumehood/bin",
	"corepack pnpm install --frozen-lockfile",
	"corepack yarn install --immutable",
	"corepack yarn install --frozen-lockfile",
	"corepack yarn install --non-interactive --frozen-lockfile",
	"npx --yes pnpm@9.1.0 install --frozen-lockfile",
	"bun install --frozen-lockfile",
}

refuses(text) if count(denied(text)) > 0

refuses(text) if allowed(text) == set()

test_setup_installs if {
	every text in setup_texts {
		count(deny) == 0 with input as by_setup(text, "setup", "setup")
		{"rule": "setup.install"} in allow with input as by_setup(text, "setup", "setup")
	}
}

test_a_proposer_does_not_install if {
	every text in setup_texts {
		refuses(text)
		not {"rule": "setup.install"} in allow with input as by_setup(text, "proposer", "setup")
		not {"rule": "setup.install"} in allow with input as by_setup(text, "setup", "run")
	}
}

test_setup_needs_the_exact_words if {
	every text in {
		"corepack enable --install-directory /usr/bin", "corepack pnpm install --frozen-lockfile x", "corepack yarn add x",
		"npx --yes pnpm@latest install --frozen-lockfile", "npx --yes evil@1.0.0 install --frozen-lockfile", "bun install evil",
		"corepack prepare yarn@stable --activate",
		"npm install --prefix .fumehood/npm --no-save --no-package-lock --no-audit --no-fund --ignore-scripts pnpm@latest",
		"npm install --prefix .fumehood/npm --no-save --no-package-lock --no-audit --no-fund --ignore-scripts evil@1.0.0",
	} {
		not {"rule": "setup.install"} in allow with input as by_setup(text, "setup", "setup")
	}
}

test_setup_installs_a_pinned_manager if {
	every spec in {"pnpm@9.15.9", "pnpm@10", "yarn@1.22.22", "@yarnpkg/cli-dist@4.9.2"} {
		text := concat(" ", ["npm install --prefix .fumehood/npm --no-save --no-package-lock --no-audit --no-fund --ignore-scripts", spec])
		{"rule": "setup.install"} in allow with input as by_setup(text, "setup", "setup")
		refuses(text)
	}
}
