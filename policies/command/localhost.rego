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
#     "nc -e sh localhost 1", "nc -l localhost 80", "redis-cli -h x.example ping", "redis-cli --pattern get", "redis-cli --eval x.lua",
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
	names_loopback
	every w in input.command.loopback { loopback_word(w) }
	not saves
}

# names_loopback is true for a command that says what it connects to, or connects to this machine without a word.
names_loopback if {
	input.command.program in {"curl", "wget"}
	some w in input.command.loopback
	w.kind == "operand"
}

names_loopback if {
	input.command.program in {"nc", "ncat", "netcat"}
	some w in input.command.loopback
	w.option == "-z"
	some host in input.command.loopback
	host.kind == "operand"
	regex.match(loopback_host, host.value)
}

names_loopback if {
	input.command.program == "redis-cli"
	some w in input.command.loopback
	w.kind in {"operand", "flag"}
	regex.match(redis_commands, w.value)
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
	some w in input.command.loopback
	w.option in {"--output-document", "--spider"}
}

# loopback_word is true for a word that is what options.txt says.
loopback_word(w) if w.kind == "flag"

loopback_word(w) if loopback_fits(w.kind, w.value)

loopback_word(w) if {
	w.attached
	w.kind == "text"
	not contains(w.value, "\n")
}

loopback_word(w) if {
	w.kind == "operand"
	loopback_operand(w.value)
}

loopback_operand(value) if {
	input.command.program in {"curl", "wget"}
	regex.match(loopback_url, value)
}

loopback_operand(value) if {
	input.command.program in {"nc", "ncat", "netcat"}
	regex.match(concat("|", [loopback_host, `^\d+(-\d+)?$`]), value)
}

# No value begins as an option does, so that each word is read as the client reads it.
loopback_fits("text", value) if not startswith(value, "-")

loopback_fits("digits", value) if regex.match(`^\d+$`, value)

loopback_fits("number", value) if regex.match(`^\d+(\.\d+)?$`, value)

loopback_fits("host", value) if regex.match(loopback_host, value)

loopback_fits("format", value) if not regex.match(`^[@-]|%output`, value)

loopback_fits("file", "-")

loopback_fits("file", value) if {
	some w in input.command.operands
	w.value == value
	w.place in {"workspace", "tmp", "null"}
}

# A file that is sent is in the workspace or /tmp, and is not hidden.
loopback_fits("data", value) if {
	not regex.match(`[@<~]|^[./-]|(^|[/=])\.`, value)
}

loopback_fits("body", value) if not regex.match(`^[@-]`, value)

loopback_fits(kind, value) if {
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
loopback_operand(value) if {
	input.command.program == "redis-cli"
	not regex.match(redis_unsafe_word, value)
}

redis_unsafe_word := concat("", [
	`(?i)^(-|dir|dbfilename|appendfilename|appenddirname|logfile|aclfile|module|load|loadex`,
	`|replicaof|slaveof|migrate)$`,
])

# lrange x 0 -1
loopback_word(w) if {
	input.command.program == "redis-cli"
	w.kind == "unknown"
	regex.match(`^-\d+$`, w.value)
}

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
} else := "can start programs and reach other machines" if {
	input.command.program == "rsync"
} else := "may query localhost only with options that send, print, or write to the workspace" if {
	local_words
	input.command.program in {"curl", "wget", "redis-cli", "nc", "ncat", "netcat"}
} else := "is not allowed, not even for localhost: it can run programs or read settings" if {
	local_words
} else := "needs the network"

client_help := "write the address literally, and options such as -s, -f, -i, -X, -H, -d and -o FILE" if {
	local_words
	not networked
} else := "copy files with `cp -r src /tmp/copy`, or a part of them with `tar --exclude=node_modules -cf - . | tar -xf - -C /tmp/copy`" if {
	input.command.program == "rsync"
	not networked
} else := client_hint
