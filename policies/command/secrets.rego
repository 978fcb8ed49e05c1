# The sandbox has no credentials. A command that looks for them is denied all the same: no
# review needs them, and the denial is a sign that something is wrong.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Places where credentials are usually kept must not be read
# custom:
#   rule: read.secret
#   floor: true
#   severity: high
#   category: credentials
#   retry: never
#   match: [
#     "cat /home/runner/x", "ls -la /root", "cat /ro??/.ssh/id", "cat \"/etc/$(echo shadow)\"", "for p in /proc/[0-9]*; do cat $p/environ; done",
#     "ls /proc/self/fd/../../1/cwd", "cat /dev/sda", "tail /var/log/auth.log", "ls -l /proc/*/fd", "cat /dev/fd/../environ",
#     "f=/etc/shadow; cat \"$f\"", "cat /proc/self/environ", "cat ~/.ssh/id_rsa", "grep x /etc/shadow", "cat < /proc/1/environ", "ls /.fumehood"
#   ]
#   not_match: ["cat /proc/cpuinfo", "cat /etc/os-release"]
deny contains lib.denial(
	"read.secret",
	sprintf("%q is a place where credentials are usually kept", [value]),
	"remove it: the sandbox has no credentials",
) if {
	some value in secret_values
}

secret_values contains w.value if {
	some words in [input.command.operands, input.command.options]
	some w in words
	w.place in {"secret", "home"}
	not listed_home(w)
}

secret_values contains w.value if {
	some words in [input.command.redirects, input.command.assigns]
	some w in words
	w.place in {"secret", "home"}
	not keeps_home(w)
}

# keeps_home is true for HOME="$HOME".
keeps_home(w) if {
	w.name == "HOME"
	w.place == "home"
	w.value in own_home_values
}

secret_values contains h.value if {
	some h in input.command.homes
	h.place == "secret"
}

# METADATA
# title: The home directory must not be used
# custom:
#   rule: home.use
#   severity: medium
#   category: files
#   match: [
#     "cat ~/.npmrc", "ls ~root", "ls ~ > ~/x", "jq -n --rawfile x ~/x '$x'",
#     "for f in ~/*; do cat $f; done", "cat \"$HOME/.x\"", "rm -rf ~", "cp x ~/.profile", "echo x >> ~/.bashrc",
#     "go build -o ~/bin/x .", "cd ~ && ls", "tar xf x -C $HOME"
#   ]
#   not_match: ["echo $HOME", "echo ~", "ls -la ~", "test -d ~/x", "bundle exec rspec --tag ~slow", "git show HEAD~1"]
deny contains lib.denial(
	"home.use",
	sprintf("%q is in a home directory; the sandbox's own one has only settings, and is discarded", [h.value]),
	"use a path in the workspace or under /tmp",
) if {
	some h in input.command.homes
	not home_reader(h)
}

home_reader(_) if {
	input.command.program in {"echo", "printf", "test", "[", "[["}
	unredirected
}

home_reader(h) if {
	input.command.program == "ls"
	own_home(h)
	unredirected
}

unredirected if count([r | some r in input.command.redirects; r.kind in {"read", "write", "readwrite"}; r.place != "null"]) == 0

own_home(h) if {
	h.place == "home"
	regex.match(`^~(/[\w.@+-]+)*/?$`, h.value)
	not contains(h.value, "..")
}

# listed_home is true for a word of a command that lists the sandbox's home directory.
listed_home(w) if {
	own_home_path(w)
	input.command.program == "ls"
}

own_home_path(w) if {
	w.place == "home"
	regex.match(`^/home/fumehood(/[\w.@+-]+)*/?$`, w.value)
	not contains(w.value, "..")
}

# METADATA
# title: Credentials must not be read by name
# custom:
#   rule: read.credential
#   floor: true
#   severity: high
#   category: credentials
#   retry: never
#   match: [
#     "echo \"$GITHUB_TOKEN\"", "echo ${AWS_SECRET_ACCESS_KEY}", "printenv GITHUB_TOKEN", "declare -p NPM_TOKEN", "jq -n '$ENV.GITHUB_TOKEN'",
#     "yq -n 'env(GITHUB_TOKEN)'", "jq -n 'env.NPM_TOKEN'", "awk 'BEGIN{print ENVIRON[\"API_KEY\"]}'", "python3 -c \"print('$SECRET')\""
#   ]
#   not_match: ["printenv PATH", "grep GITHUB_TOKEN README.md", "token=1; echo $token", "echo $PATHS"]
deny contains lib.denial(
	"read.credential",
	sprintf("%s is the name of a credential", [name]),
	"remove it: the sandbox has no credentials",
) if {
	some name in input.command.credentials
	not replaced(name)
}

# The variable has a placeholder, which the gateway replaces in requests to its host.
replaced(name) if {
	name in input.context.credentials
	input.command.program in {"curl", "wget"}
}

deny contains lib.denial("read.credential", sprintf("%q asks for a credential", [word]), "remove it: the sandbox has no credentials") if {
	input.command.program in {"printenv", "declare", "typeset", "export", "env", "readonly", "local"}
	some word in input.command.argv
	not contains(word, "=")
	credential(word)
}

# jq, yq and awk ask in their filter: env.X, $ENV.X, ENVIRON["X"].
deny contains lib.denial("read.credential", sprintf("%q asks for a credential", [asked]), "remove it: the sandbox has no credentials") if {
	input.command.program in {"jq", "gojq", "yq", "awk", "gawk", "mawk", "nawk", "original-awk"}
	some word in input.command.argv
	some asked in regex.find_n(`(^|[^.\w])(env|strenv|ENV|ENVIRON)\W+\w+`, word, -1)
	some name in regex.find_n(`\w+$`, asked, -1)
	credential(name)
}

credential(name) if regex.match(credential_name, name)

credential_name := concat("", [
	`(?i)(^|_)(token|secrets?|password|passwd|credentials?|apikey|api_key|access_key|private_key|pat`,
	`|auth)(_|$)`,
])

# METADATA
# title: ps must not show environments, nor getent passwords
# custom:
#   rule: read.process
#   floor: true
#   severity: high
#   category: credentials
#   retry: never
#   match: ["ps auxe", "ps eww 1", "ps axeww", "getent shadow", "getent gshadow x"]
#   not_match: ["ps aux", "ps -ef", "ps -o pid,etime", "getent passwd root", "ps -C node"]
deny contains lib.denial("read.process", "this shows the environment of other processes", "list processes without it: `ps aux` or `ps -ef`") if {
	input.command.program == "ps"
	some i, word in input.command.argv
	regex.match(`^[a-zA-Z]*e[a-zA-Z]*$`, word)
	not ps_value(i)
}

deny contains lib.denial("read.process", "this shows passwords", "remove it") if {
	input.command.program == "getent"
	some word in input.command.argv
	contains(word, "shadow")
}

ps_value(i) if {
	i > 0
	regex.match(`^(-[a-zA-Z]*[oCpugtU]|o|--\w+)$`, input.command.argv[i - 1])
}
