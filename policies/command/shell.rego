package fumehood.command

import data.fumehood.lib

# METADATA
# title: No variable that steers loaders, shells, interpreters or tools
# custom:
#   rule: env.steering
#   match: ["LOCPATH=/tmp/x ls", "TMPDIR=/etc mktemp", "XDG_CONFIG_HOME=/tmp/x git log", "TAR_OPTIONS=--x tar cf a b", "ERL_FLAGS='-eval x' erl", "PYTHONPATH=/tmp/x pytest", "RUSTFLAGS='-Clinker=./x' cargo build", "CFLAGS=-fplugin=./x.so make", "NODE_OPTIONS='--max-old-space-size=1 --require=./x' node a", "SOME_TOOL_RC=x ls", "THING=/etc/x go test", "FC=./x go build", "GOWORK=/tmp/x/go.work go build", "LEX=./x make", "LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", "export GIT_PAGER=x", "NODE_OPTIONS=--require=./x.js npm test"]
#   not_match: ["CI=1 go test ./...", "FOO=bar ./run.sh", "PYTHONPATH=src pytest", "x=1", "GOOS=$os go vet ./...", "UPDATE_GOLDEN=1 go test ./...", "DB_URL=sqlite:////tmp/x.db pytest", "RUSTFLAGS='-D warnings' cargo check", "NODE_OPTIONS=--max-old-space-size=4096 npm test", "CFLAGS='-fsanitize=address -g' make", "env -i PATH=/usr/bin:/bin go version"]
deny contains lib.denial("env.steering", sprintf("%s %s", [a.name, lib.why_env(a.name)]), "leave the variable out, or give the option on the command line") if {
	some a in input.command.assigns
	lib.steers(a.name)
	not allowed_assign(a)
}

allowed_assign(a) if {
	a.static
	lib.env_ok(a.name, a.value)
}

allowed_assign(a) if a.name in lib.any_value

# read -r with IFS is the one way to split a line; parse refuses it elsewhere.
allowed_assign(a) if {
	a.name == "IFS"
	a.static
	input.command.program in {"read", "mapfile", "readarray"}
}

deny contains lib.denial("env.steering", sprintf("%s would lead to %q", [a.name, a.value]), "leave the variable out, or name a place in the workspace or under /tmp") if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	lib.elsewhere(a.value)
}

deny contains lib.denial("env.steering", sprintf("%s may name a program to run", [a.name]), "leave the variable out") if {
	some a in input.command.assigns
	a.exported
	not lib.steers(a.name)
	regex.match(`^[A-Z][A-Z0-9]{0,7}$`, a.name)
	regex.match(`^\.{0,2}/|^\.\.`, a.value)
	not a.place in {"tmp", "null"}
}

allowed_assign(a) if {
	not a.exported
	a.name in {"GO", "GOFILES", "GOPKGS", "PYTHON", "NODE_VERSION"}
}

# METADATA
# title: Write into the workspace and /tmp only
# custom:
#   rule: redirect.place
#   match: ["echo x > /etc/motd", "echo x > .git/hooks/pre-commit", "echo x > /dev/tcp/1.2.3.4/80", "echo x > .npmrc", "echo x > \"$f\""]
#   not_match: ["go test ./... > /tmp/out.txt 2>&1", "ls 2>/dev/null", "echo x > out.txt"]
deny contains lib.denial("redirect.place", sprintf("the redirection writes to %q: %s", [r.value, place_word(r.place)]), "write to a literal path in the workspace or under /tmp, or to standard output, which is kept") if {
	some r in input.command.redirects
	r.kind in {"write", "readwrite"}
	not r.place in lib.writable
}

# METADATA
# title: Nothing reads what a canary would lie in
# custom:
#   rule: read.secret
#   retry: never
#   match: ["cat /home/runner/x", "ls -la /root", "cat /ro??/.ssh/id", "cat \"/etc/$(echo shadow)\"", "for p in /proc/[0-9]*; do cat $p/environ; done", "ls /proc/self/fd/../../1/cwd", "cat /dev/sda", "tail /var/log/auth.log", "ls -l /proc/*/fd", "cat /dev/fd/../environ", "f=/etc/shadow; cat \"$f\"", "cat /proc/self/environ", "cat ~/.ssh/id_rsa", "grep x /etc/shadow", "cat < /proc/1/environ", "ls /.fumehood"]
#   not_match: ["cat /proc/cpuinfo", "cat /etc/os-release"]
deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [w.value]), "leave it out: the sandbox holds no credentials") if {
	some w in input.command.operands
	w.place in {"secret", "home"}
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [r.value]), "leave it out: the sandbox holds no credentials") if {
	some r in input.command.redirects
	r.place in {"secret", "home"}
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [a.value]), "leave it out: the sandbox holds no credentials") if {
	some a in input.command.assigns
	a.place in {"secret", "home"}
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [o.value]), "leave it out: the sandbox holds no credentials") if {
	some o in input.command.options
	o.place in {"secret", "home"}
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [h.value]), "leave it out: the sandbox holds no credentials") if {
	some h in input.command.homes
	h.place == "secret"
}

# METADATA
# title: The home folder is empty, and not for commands
# custom:
#   rule: home.write
#   match: ["cat ~/.npmrc", "ls ~", "for f in ~/*; do cat $f; done", "cat \"$HOME/.x\"", "rm -rf ~", "cp x ~/.profile", "echo x >> ~/.bashrc", "go build -o ~/bin/x .", "cd ~ && ls", "tar xf x -C $HOME"]
#   not_match: ["echo $HOME", "echo ~", "test -d ~/x", "bundle exec rspec --tag ~slow", "git show HEAD~1"]
deny contains lib.denial("home.write", sprintf("%q lies in the home folder, which is empty and thrown away", [h.value]), "use a path in the workspace or under /tmp") if {
	some h in input.command.homes
	not home_reader
}

home_reader if {
	input.command.program in {"echo", "printf", "test", "[", "[["}
	count([r | some r in input.command.redirects; r.kind in {"read", "write", "readwrite"}; r.place != "null"]) == 0
}

# METADATA
# title: Stay in the workspace
# custom:
#   rule: shell.cd
#   match: ["cd / && ls", "cd .git/hooks", "cd ../.."]
#   not_match: ["cd pkg && go test", "cd /tmp", "cd -"]
deny contains lib.denial("shell.cd", sprintf("cd %q leaves the workspace", [w.value]), "name a folder of the workspace, or one under /tmp") if {
	input.command.program in {"cd", "pushd"}
	some w in input.command.operands
	not w.place in {"workspace", "tmp", "dynamic", "control"}
}

# METADATA
# title: Options that only run time knows
# description: A word that begins with a value from elsewhere may turn out an option, and these tools have options that run programs.
# custom:
#   rule: option.smuggled
#   match: ["git log $x", "tar xf *", "git ls-files | xargs sort", "rg $pattern"]
#   not_match: ["wc -l $f", "git log -- $f", "sort -- $f"]
deny contains lib.denial("option.smuggled", sprintf("a word that only run time knows could be an option of %s", [input.command.program]), "put -- before it, begin it with ./ or write it out") if {
	input.command.loose
	input.command.program in guarded
	not harmless_tail
}

guarded := {"git", "tar", "sort", "find", "rg", "awk", "gawk", "mawk", "nawk", "original-awk", "make", "gmake", "npm", "pnpm", "yarn", "npx", "zip", "unzip", "split", "env", "gcc", "g++", "cc", "clang", "perl", "ruby", "php"}

# A sort or awk that merely reads what a loop or xargs names cannot be told apart
# from one that is given an option; git has read-only verbs without such options.
harmless_tail if {
	input.command.program == "git"
	input.command.sub in {"rev-parse", "cat-file", "ls-files", "check-ignore", "merge-base", "show-ref", "rev-list", "ls-tree"}
}

# METADATA
# title: Unknown options of tools that can run programs
# custom:
#   rule: option.unknown
#   match: ["sort --frobnicate x", "sed --evil x", "go test -evil ./..."]
#   not_match: ["sort -rn x", "cat --whatever x"]
deny contains lib.denial("option.unknown", sprintf("the policy does not know %s's option %s", [input.command.program, name]), "use only options that the policy lists in options.txt") if {
	some name in input.command.unknown
}

# METADATA
# title: A shell runs text that was judged, or a script of the workspace
# custom:
#   rule: shell.script
#   match: ["bash /etc/x.sh", "bash /tmp/x.sh"]
#   not_match: ["bash scripts/test.sh", "bash -c 'go test ./...'", "sh ./x.sh"]
deny contains lib.denial("shell.script", sprintf("the script %q is no script of the workspace", [input.command.operands[0].value]), "run a script of the workspace, or write its commands") if {
	input.command.program in {"bash", "sh", "dash"}
	not "-c" in input.command.argv
	not "-n" in input.command.argv
	not input.command.operands[0].place in {"workspace", "control"}
}

deny contains lib.denial("shell.script", "a shell reads its commands from standard input", "write the commands themselves") if {
	input.command.program in {"bash", "sh", "dash"}
	input.command.stdin_from in {"herestring", "heredoc", "file"}
}

# METADATA
# title: Signals stay among the command's own jobs
# custom:
#   rule: shell.kill
#   match: ["kill -9 1", "kill -9 -1"]
#   not_match: ["kill $pid", "kill %1"]
deny contains lib.denial("shell.kill", "kill may name only jobs and processes that the text started", "use kill \"$pid\" or kill %1") if {
	input.command.program == "kill"
	some w in input.command.argv
	w in {"1", "-1", "0"}
}

place_word(place) := object.get(place_words, place, "it is no place to write")

place_words := {
	"git": "git's own files steer git", "control": "this file steers tools", "outside": "it lies outside the workspace", "home": "the home folder is empty and thrown away",
	"secret": "it is a device or a place for credentials", "dynamic": "only run time knows where it lies", "url": "it is no path",
}
