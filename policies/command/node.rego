# npm, pnpm, yarn and npx may install from the lock file and run the repository's scripts
# and tools. npx fetches and runs any package, so only tools that are listed here may run.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial(
	"code.launcher",
	sprintf("%s %s %s", [input.command.program, why_not_started(input.command.tool), input.command.sub]),
	launched_instead(input.command.tool),
) if {
	input.command.program in npx_like
	not npx_tool(input.command.sub)
	not installed_tool
	not setup_install
}

installed_tool if {
	not fetching
	starts_nothing_else(input.command.tool)
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
	`|tsd|dtslint|expect-type|graphql-codegen|js-yaml|ajv|json\w*|semver|mkdirp`,
	`|rimraf|cross-env-shell|expo|metro|detox|zx|vitepress|docusaurus|html-validate|pa11y|lighthouse`,
	`|linkinator|lockfile-lint|autocannon|wait-on|drizzle-kit|wrangler|ts-prune|unimported|acorn|terser`,
	`|uglifyjs|svgo|rspack|rsbuild|parcel|rolldown|tsdown|type-coverage|ts-unused-exports|dpdm|skott`,
	`|tsc-alias|rescript|wasm-opt|pino-pretty|tinypool|microbundle|preconstruct|documentation|doctoc`,
	`|syncpack|manypkg|bundlewatch|cucumber|stylus|lessc|purgecss|svelte-kit|quicktype|orval|pbjs|pbts`,
	`|relay-compiler|mikro-orm|typeorm|sequelize|knex)([-.]\w+)*(@[\w.-]+)?$`,
])

deny contains lib.denial("code.verb", "playwright install would fetch browsers", "use the installed browsers: `npx playwright test`") if {
	input.command.program == "npx"
	input.command.sub in {"playwright", "cypress", "puppeteer", "husky"}
	input.command.operands[0].value in {"install", "install-deps", "open", "codegen", "init"}
}
