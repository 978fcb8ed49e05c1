package fumehood.command

import data.fumehood.lib

# METADATA
# title: No variable that steers loaders, shells, interpreters or tools
# custom:
#   rule: env.steering
#   match: ["LD_PRELOAD=./x.so ls", "PATH=.:$PATH ls", "export GIT_PAGER=x", "NODE_OPTIONS=--require=./x.js npm test"]
#   not_match: ["CI=1 go test ./...", "FOO=bar ./run.sh", "PYTHONPATH=src pytest", "x=1"]
deny contains lib.denial("env.steering", sprintf("%s %s", [a.name, lib.why_env(a.name)]), "leave the variable out, or give the option on the command line") if {
	some a in input.command.assigns
	lib.steers(a.name)
	not allowed_assign(a)
}

allowed_assign(a) if {
	a.static
	lib.env_ok(a.name, a.value)
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
#   match: ["cat /proc/self/environ", "cat ~/.ssh/id_rsa", "grep x /etc/shadow", "cat < /proc/1/environ", "ls /.fumehood"]
#   not_match: ["cat /proc/cpuinfo", "cat /etc/os-release"]
deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [w.value]), "leave it out: the sandbox holds no credentials") if {
	some w in array.concat(input.command.operands, input.command.redirects)
	w.place == "secret"
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [o.value]), "leave it out: the sandbox holds no credentials") if {
	some o in input.command.options
	o.place == "secret"
}

deny contains lib.denial("read.secret", sprintf("%q is a place where credentials would lie", [h.value]), "leave it out: the sandbox holds no credentials") if {
	some h in input.command.homes
	h.place == "secret"
	input.command.program != "echo"
}

# METADATA
# title: The home folder is not for commands
# custom:
#   rule: home.write
#   match: ["rm -rf ~", "cp x ~/.profile", "echo x >> ~/.bashrc", "go build -o ~/bin/x .", "cd ~ && ls", "tar xf x -C $HOME"]
#   not_match: ["ls ~", "echo $HOME", "cat ~/x"]
deny contains lib.denial("home.write", sprintf("%q lies in the home folder, which is empty and thrown away", [h.value]), "use a path in the workspace or under /tmp") if {
	some h in input.command.homes
	not home_reader
}

home_reader if {
	input.command.program in {"ls", "cat", "echo", "du", "test", "[", "[[", "stat", "find", "printf", "head", "wc", "grep", "realpath", "env", "timeout", "xargs", "rg"}
	every r in input.command.redirects { r.kind != "write" }
}

home_reader if {
	input.command.place == "none"
	count(input.command.redirects) == 0
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

place_word(place) := {
	"git": "git's own files steer git", "control": "this file steers tools", "outside": "it lies outside the workspace",
	"secret": "it is a device or a place for credentials", "dynamic": "only run time knows where it lies", "url": "it is no path",
}[place]
