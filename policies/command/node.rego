# npm, pnpm, yarn and npx may install from the lock file and run the repository's scripts
# and tools. npx fetches and runs any package, so only tools that are listed here may run.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial("code.launcher", sprintf("npx must not start %s", [input.command.sub]), "start a tool of the repository by its own name") if {
	input.command.program in {"npx", "bunx", "pnpx"}
	not npx_tool(input.command.sub)
	not setup_install
}

npx_tool("") # it is decided when it starts, or there are only options

npx_tool(name) if name in lib.runners

npx_tool(name) if regex.match(`^(\./.*|@[\w.-]+/[\w.-]*(cli|lint|test|check)[\w.-]*)$`, name)

npx_tool(name) if regex.match(npx_tool_name, name)

npx_tool_name := concat("", [
	`^(@[\w.-]+/)?([\w]+[-.])*(\w*lint|\w*test|jest|mocha|tsc|types?|check|format|prettier|rollup`,
	`|webpack|vite|esbuild|swc|babel|playwright|cypress|storybook|cspell|knip|depcheck|madge`,
	`|size-limit|attw|publint|tap|ava|c8|nyc|uvu|tsx|ts-node|tsup|unbuild|svelte|astro|vue|ng|nx`,
	`|turbo|next|nuxt|remix|gatsby|eleventy|prisma|codegen|openapi|redocly|redoc|spectral|markdown`,
	`|remark|textlint|sass|postcss|tailwind|tailwindcss|browserslist|license|dependency-cruiser`,
	`|depcruise|sort-package-json|jscpd|dprint|oxlint|biome|rome|xo|standard|wtr|karma|stryker`,
	`|codemod|buf|node-gyp|react-scripts|lerna|changeset|commitlint|benchmark|tinybench|api-extractor`,
	`|typedoc|jsdoc|coverage|audit-ci|bundlesize|source-map-explorer|license-checker|sol\w*|hardhat`,
	`|http-server|serve|tsd|dtslint|expect-type|graphql-codegen|js-yaml|ajv|json\w*|semver|mkdirp`,
	`|rimraf|cross-env-shell|expo|metro|detox|zx|vitepress|docusaurus|html-validate|pa11y|lighthouse`,
	`|linkinator|lockfile-lint|autocannon|wait-on)([-.]\w+)*(@[\w.-]+)?$`,
])

deny contains lib.denial("code.verb", "playwright install would fetch browsers", "use the installed browsers: `npx playwright test`") if {
	input.command.program == "npx"
	input.command.sub in {"playwright", "cypress", "puppeteer", "husky"}
	input.command.operands[0].value in {"install", "install-deps", "open", "codegen", "init"}
}
