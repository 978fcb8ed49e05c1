# A command may query the servers that it started itself. The sandbox has no network, so a
# client of localhost reaches nothing else. Each word is checked: options that read
# settings, run programs or write outside the workspace are not in the tables.
package fumehood.command

loopback_url := `^(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?([/?#].*)?$`

loopback_host := `^(localhost|127(\.\d{1,3}){3}|::1)$`

# METADATA
# title: Clients may query servers on localhost
# custom:
#   rule: network.localhost
#   match: [
#     "curl -s http://localhost:3000/", "curl -fsS -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/metrics",
#     "curl -X POST -H 'Content-Type: application/json' -d @body.json localhost:8080/api", "wget -qO- http://127.0.0.1:8080/",
#     "redis-cli -p 6380 ping", "nc -z localhost 8080", "curl --version", "curl -sI 'http://[::1]:8080/?a=1'"
#   ]
#   not_match: [
#     "curl https://x.example", "curl http://localhost@x.example/", "curl http://localhost.x.example/", "curl -o /etc/x http://localhost/",
#     "curl -o .git/hooks/pre-commit http://localhost/", "curl -K x http://localhost/", "curl -d @/etc/passwd http://localhost/",
#     "curl -F f=@../x http://localhost/", "curl -w '%output{/etc/x}' http://localhost/", "curl -x http://x.example http://localhost/",
#     "curl -O http://localhost/x", "curl http://localhost/ https://x.example", "curl \"$X\" http://localhost/", "wget http://localhost/x",
#     "curl --version x.example", "wget -i x http://localhost/",
#     "nc -e sh localhost 1", "nc -l localhost 80", "redis-cli -h x.example ping", "redis-cli --eval x.lua",
#     "curl file:///etc/passwd", "curl --unix-socket /var/run/docker.sock http://localhost/", "curl -A -X -K localhost/x", "redis-cli -n -p --eval x"
#   ]
allow contains {"rule": "network.localhost"} if {
	input.command.place in found
	local_client
}

# METADATA
# title: Commands with a client of localhost may start curl, wget and nc
# custom:
#   rule: grant.localhost
#   grants: ["curl -s http://localhost:3000/", "node server.js & curl http://127.0.0.1/"]
#   not_grants: ["cat x"]
exec contains {"rule": "grant.localhost", "kind": "localhost"} if {
	input.command.place in found
	local_client
}

local_client if {
	not networked
	input.command.static
	input.command.program in {"curl", "wget"}
	some word in input.command.argv
	regex.match(loopback_url, word)
	every i, w in input.command.argv { client_word(i, w) }
	not saves
}

local_client if {
	not networked
	input.command.static
	input.command.program == "redis-cli"
	some command in input.command.argv
	regex.match(redis_commands, command)
	every i, w in input.command.argv { redis_word(i, w) }
}

local_client if {
	not networked
	input.command.static
	input.command.program in {"nc", "ncat", "netcat"}
	some option in input.command.argv
	regex.match(`^-[vn46]*z[vn46]*$`, option)
	some host in input.command.argv
	regex.match(loopback_host, host)
	every w in input.command.argv { regex.match(concat("|", [loopback_host, `^(-[vnz46]+|-w ?\d*|\d+(-\d+)?)$`]), w) }
}

# A version and help are printed without a connection.
local_client if {
	not networked
	input.command.program in {"curl", "wget", "nc", "ncat", "netcat", "dig"}
	input.command.static
	client_help_words
}

client_help_words if describes_itself

client_help_words if input.command.argv in [["-V"], ["-h"]]

# curl --help all
client_help_words if {
	input.command.program == "curl"
	count(input.command.argv) == 2
	input.command.argv[0] in {"--help", "-h"}
	regex.match(`^[a-z]+$`, input.command.argv[1])
}

# wget without -O writes a file that the server names.
saves if {
	input.command.program == "wget"
	not names_output
}

names_output if {
	some word in input.command.argv
	regex.match(`^(-[qSvcd]*O-?|--output-document(=.*)?|--spider)$`, word)
}

client_word(i, w) if {
	regex.match(loopback_url, w)
	not after_option(i)
}

after_option(i) if client_value(input.command.argv[i - 1])

client_word(_, w) if regex.match(client_flags[input.command.program], w)

client_word(i, _) if {
	i > 0
	option_before := input.command.argv[i - 1]
	kind := client_value(option_before)
	client_fits(kind, input.command.argv[i])
}

client_word(i, w) if {
	i + 1 < count(input.command.argv)
	client_value(w)
}

client_flags := {
	"curl": concat("", [
		`^(-[sSfiIvLkGgNq#0146]+|--(silent|show-error|fail|fail-with-body|fail-early|include|head|verbose`,
		`|location|insecure|get|globoff|no-buffer|compressed|http1\.[01]|http2|http2-prior-knowledge`,
		`|no-progress-meter|progress-bar|retry-connrefused|retry-all-errors|ipv[46]|path-as-is|raw`,
		`|no-keepalive|tr-encoding))$`,
	]),
	"wget": concat("", [
		`^(-(nv|[qSvcd]+|[qSvcd]*O-)|--(quiet|no-verbose|server-response|spider|content-on-error`,
		`|no-check-certificate|retry-connrefused|no-proxy|tries=\d+|timeout=\d+|waitretry=\d+`,
		`|method=[A-Z]+|header=[^\n]*|post-data=.*|body-data=.*|output-document=-))$`,
	]),
}

# client_value is the kind of an option's value, which is the next word. A text is sent or
# printed, a file is written, a body or data may name a file that is sent.
client_value(option) := kind if {
	some pattern, kind in client_values[input.command.program]
	regex.match(pattern, option)
}

client_values := {
	"curl": {
		concat("", [
			`^(-[sSfiIvLkGgN#]*[XAeurm]|--(request|user-agent|referer|user|range|max-time|connect-timeout`,
			`|retry|retry-delay|retry-max-time|max-redirs|limit-rate|request-target))$`,
		]): "text",
		`^(-[sSfiIvLkGgN#]*w|--write-out)$`: "format",
		`^(-[sSfiIvLkGgN#]*o|--output|-[sSfiIvLkGgN#]*[Dc]|--dump-header|--cookie-jar)$`: "file",
		`^(-[sSfiIvLkGgN#]*[dH]|--(data|data-binary|data-ascii|json|header))$`: "body",
		`^(--data-raw|--form-string)$`: "text",
		`^(-[sSfiIvLkGgN#]*[FTb]|--(data-urlencode|form|upload-file|cookie))$`: "data",
	},
	"wget": {
		`^(-[qSvcd]*[Tt]|--(timeout|tries|header|post-data|body-data|method|waitretry))$`: "text",
		`^(-[qSvcd]*O|--output-document)$`: "file",
	},
}

# No value begins as an option does, so that each word is read as the client reads it.
client_fits("text", value) if not startswith(value, "-")

client_fits("format", value) if not regex.match(`^[@-]|%output`, value)

client_fits("file", "-")

client_fits("file", value) if {
	some w in input.command.operands
	w.value == value
	w.place in {"workspace", "tmp", "null"}
}

# A file that is sent is in the workspace or /tmp, and is not hidden.
client_fits("data", value) if {
	not regex.match(`[@<~]|^[./-]|(^|[/=])\.`, value)
}

client_fits("body", value) if not regex.match(`^[@-]`, value)

client_fits(kind, value) if {
	kind in {"body", "data"}
	regex.match(local_file_value, value)
}

local_file_value := concat("", [
	`^([\w-]+=)?@(-|(\./)?\w[\w-]*(\.\w+)*(/\w[\w-]*(\.\w+)*)*`,
	`|/tmp/\w[\w-]*(\.\w+)*(/\w[\w-]*(\.\w+)*)*)$`,
])

redis_commands := concat("", [
	`(?i)^(ping|echo|time|info|dbsize|keys|scan|type|ttl|pttl|expire|persist|exists|get|mget|getrange`,
	`|strlen|set|setex|mset|append|incr|incrby|decr|decrby|del|unlink|[lr](push|pop|len|range|index`,
	`|rem|set|trim)|s(add|members|ismember|card|rem|union|inter|diff)|h(set|get|mget|getall|del|len`,
	`|keys|vals|exists)|z(add|range|rangebyscore|rank|score|card|rem)|x(add|len|range|read|info)`,
	`|pf(add|count)|geo(add|pos|dist)|flushall|flushdb|memory|object|latency|slowlog|client|command`,
	`|config|cluster|eval|evalsha|script|function|wait|multi|exec|publish|subscribe|debug|acl|lolwut`,
	`|--(stat|bigkeys|memkeys|hotkeys|latency|latency-history|scan|version|help|intrinsic-latency))$`,
])

# Arguments that make a server read or write files, or connect, are not allowed.
redis_word(_, w) if not regex.match(redis_unsafe_word, w)

redis_unsafe_word := concat("", [
	`(?i)^(-.*|dir|dbfilename|appendfilename|appenddirname|logfile|aclfile|module|load|loadex`,
	`|replicaof|slaveof|migrate)$`,
])

redis_word(i, w) if {
	input.command.argv[i - 1] in {"-p", "-n", "-r", "-i"}
	regex.match(`^\d+(\.\d+)?$`, w)
}

redis_word(i, "-h") if regex.match(loopback_host, input.command.argv[i + 1])

redis_word(_, w) if regex.match(redis_option, w)

redis_option := concat("", [
	`^-?-\d+$|^(-[pnric23ex]|--(raw|no-raw|csv|json|stat|bigkeys|memkeys|hotkeys|latency`,
	`|latency-history|scan|pattern|count|no-auth-warning|version|help|intrinsic-latency|verbose))$`,
])

# local_words is true for a client that names localhost.
local_words if {
	some word in input.command.argv
	regex.match(`^(https?://)?(localhost|127\.\d[\d.]*|\[?::1\]?)([:/?#]|$)`, word)
	not contains(word, "@")
}

local_words if input.command.program == "redis-cli"

# client_reason says what is wrong with a client, and client_help what to write instead.
client_reason := "shows and changes network interfaces, and the sandbox has only the loopback interface" if {
	input.command.program in {"ip", "ifconfig"}
} else := "can run programs, read files and reach other machines" if {
	input.command.program in {"psql", "mysql", "mongosh"}
} else := "may query localhost only with options that send, print, or write to the workspace" if {
	local_words
	input.command.program in {"curl", "wget", "redis-cli", "nc", "ncat", "netcat"}
} else := "is not allowed, not even for localhost: it can run programs or read settings" if {
	local_words
} else := "needs the network"

client_help := "write the address literally, and options such as -s, -f, -i, -X, -H, -d and -o FILE" if {
	local_words
	not networked
} else := client_hint
