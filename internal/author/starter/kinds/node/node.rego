# JavaScript and TypeScript: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: Scripts that deploy are for maintainers
# custom:
#   rule: repo.node-deploy
#   text_only: true
#   match: ["npm run deploy", "npm run release", "pnpm -r run deploy"]
#   not_match: ["npm test", "npm run build", "npm test deploy"]
deny contains {"rule": "repo.node-deploy", "message": "scripts that deploy are for maintainers", "suggestion": "run the script that builds or tests"} if {
	input.command.program in {"npm", "yarn", "pnpm"}
	input.command.sub in {"run", "run-script"}
	some word in input.command.operands
	word.value in {"deploy", "release"}
}
