package fumehood.exec

import data.fumehood.lib

# METADATA
# title: Programs must not publish or log in
# description: This is recognized by the tool's arguments. A library that does the same has none.
# custom:
#   rule: exec.publish
#   severity: medium
#   category: publishing
#   match: [
#     {path: /usr/bin/node, argv: [node, /usr/lib/node_modules/npm/bin/npm-cli.js, publish]},
#     {path: /usr/lib/node_modules/npm/bin/npm-cli.js, argv: [npm, --silent, publish, --access, public]},
#     {path: /usr/bin/python3.11, argv: [python3, -m, twine, upload, dist/x]}, {path: /usr/bin/env, argv: [env, node, /usr/bin/npm, login]},
#     {path: /usr/bin/cargo, argv: [cargo, +stable, publish]}, {path: /usr/bin/gem, argv: [gem, push, x.gem]},
#     {path: /usr/bin/openssl, argv: [openssl, s_client, -connect, "x:443"]},
#     {path: /usr/local/bin/twine, argv: [/usr/bin/python3, /usr/local/bin/twine, upload, x]}
#   ]
#   not_match: [
#     {path: /usr/bin/node, argv: [node, /usr/lib/node_modules/npm/bin/npm-cli.js, run, publish]},
#     {path: /usr/bin/cargo, argv: [cargo, test, publish]}, {path: /usr/bin/node, argv: [node, publish.js]},
#     {path: /usr/bin/python3.11, argv: [python3, -c, "print('publish')"]}, {path: /usr/bin/openssl, argv: [openssl, x509, -in, a]},
#     {path: /usr/bin/openssl, argv: [openssl, s_client, -connect, "x:443"], grants: [network]}, {path: /usr/bin/git, argv: [npm, publish]}
#   ]
deny contains lib.denial(
	"exec.publish",
	sprintf("%s %s publishes, logs in or reaches the network", [input.tool, input.sub]),
	"build, test and check the repository",
) if {
	worded[input.name]
	input.sub in publishing[input.tool]
	not client
}

# client is true for openssl's client when hosts were granted.
client if {
	input.tool == "openssl"
	"network" in input.grants
}

# worded programs are those that publish by a word, and those that run the tool that their
# arguments name. The set is written out: computing it would cost as much as all other
# rules here.
worded := {
	"node", "python3", "ruby", "perl", "env", "busybox", "toybox", "coreutils", "sbase-box", "ubase-box",
	"npm", "pnpm", "yarn", "bun", "deno", "jsr", "lerna", "changeset", "wasm-pack", "cargo", "gem", "twine", "poetry", "uv", "flit", "hatch", "pdm",
	"mix", "stack",
	"cabal", "lein", "luarocks", "pod", "vsce", "ovsx", "helm", "nuget", "goreleaser", "mvn", "sbt", "openssl", "terraform", "serverless", "wrangler",
	"netlify", "vercel",
	"firebase",
}

publishing := {
	"npm": node_registry, "pnpm": node_registry, "yarn": node_registry, "bun": {"publish"}, "deno": {"publish", "deploy"}, "jsr": {"publish"},
	"lerna": {"publish"}, "changeset": {"publish"}, "wasm-pack": {"publish", "login"},
	"cargo": {"publish", "login", "logout", "owner", "yank"}, "gem": {"push", "signin", "owner", "yank"}, "twine": {"upload", "register"},
	"poetry": {"publish"}, "uv": {"publish"}, "flit": {"publish"}, "hatch": {"publish"}, "pdm": {"publish"},
	"mix": {"hex.publish", "hex.user"}, "stack": {"upload"}, "cabal": {"upload"}, "lein": {"deploy"}, "luarocks": {"upload"}, "pod": {"trunk"},
	"vsce": {"publish", "login"}, "ovsx": {"publish"}, "helm": {"push", "install", "upgrade"}, "nuget": {"push"}, "goreleaser": {"publish"},
	"mvn": {"deploy", "site-deploy", "release:perform"}, "sbt": {"publish", "publishSigned"}, "openssl": {"s_client", "s_server", "s_time"},
	"terraform": {"apply", "destroy", "login"}, "serverless": {"deploy"}, "wrangler": {"deploy", "publish", "login"}, "netlify": {"deploy", "login"},
	"vercel": {"deploy", "login"}, "firebase": {"deploy", "login"},
}

node_registry := {"publish", "unpublish", "login", "adduser", "logout", "token", "owner", "access", "deprecate", "dist-tag"}
