# Build and test tools need no URL except localhost, and open no server.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Only localhost URLs
# custom:
#   rule: code.url
#   severity: medium
#   category: network
#   match: [
#     "deno run -A https://203.0.113.9/x.ts", "go tool pprof http://203.0.113.9/debug/pprof/heap", "rails new x -m http://203.0.113.9/t.rb",
#     "turbo run build --api=http://203.0.113.9", "./serve 0.0.0.0:80"
#   ]
#   not_match: ["npx wait-on http://localhost:3000", "pytest --base-url=http://127.0.0.1:8000", "python3 -c 'print(\"http://x.example\")'"]
deny contains lib.denial(
	"code.url",
	sprintf("%s is not a localhost URL, and there is no network", [word]),
	"use what is already in the repository or installed",
) if {
	some word in input.command.urls
	running
	not regex.match(local_server, word)
	not client
}

local_server := `^[^/]*://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/[^:]*)?$`

deny contains lib.denial(
	"code.url",
	sprintf("a server must not listen on %s", [w.value]),
	"test without a server, or on 127.0.0.1 from the repository's tests",
) if {
	some w in input.command.operands
	startswith(w.value, "0.0.0.0")
	running
}
