# Whatever an option is called, the paths that the words of a build, test or check tool
# hold lie in the workspace or under /tmp, or are its own below /usr and read only.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial("code.outside", sprintf("%q would be written", [path]), "write in the workspace or under /tmp") if {
	contains(joined, "/usr/")
	input.command.program in lib.runners
	writing
	some [_, word] in spoken
	some path in paths(word)
	regex.match(`^/usr/`, path)
}

# METADATA
# title: Build, test and check tools stay in the workspace
# custom:
#   rule: code.outside
#   match: ["ruff check --config=/opt/x.toml .", "phpunit --bootstrap /opt/x.php", "./gradlew -p /opt/x test", "bazel --output_user_root=/etc/x test", "node --redirect-warnings=/etc/x a.js", "gcc -I/opt/evil a.c"]
#   not_match: ["gcc -I/usr/include/x a.c", "cmake -S . -B /tmp/build", "bazel test //pkg:x", "pytest -k 'a/b'"]
deny contains lib.denial("code.outside", sprintf("%q is outside the workspace and /tmp", [path]), "use files of the workspace, or under /tmp for what is written") if {
	pathlike
	running
	some [_, word] in spoken
	not contains(word, "://")
	some path in paths(word)
	not inner(path)
}

inner(path) if regex.match(`^(/workspace|/tmp|/dev/(null|stdin|stdout|stderr|tty|zero|urandom|fd/[0-9]+))(/|$)`, path)

inner(path) if regex.match(`^-[A-Za-z](/workspace|/tmp)(/|$)`, path)

# A word that is one path is judged with the folder that the command runs in.
inner(path) if {
	some w in input.command.operands
	w.value == path
	w.place in {"workspace", "tmp", "null", "control"}
}

inner(path) if {
	some o in input.command.options
	o.value == path
	o.place in {"workspace", "tmp", "null", "control"}
}

# What compilers and interpreters may name because it is theirs, and read-only.
inner(path) if regex.match(`^(-[A-Za-z])?/usr/(include|lib|local/include|local/lib|share)(/|$)`, path)

# A word that begins like no folder of a system is a route, a label or a pattern:
# /api/users, //pkg:target, s/a/b/.
inner(path) if {
	regex.match(`^(-[A-Za-z])?/`, path)
	not regex.match(`^(-[A-Za-z])?/+(etc|usr|bin|sbin|lib\w*|opt|var|root|home|proc|sys|dev|boot|run|srv|mnt|media|snap|workspace|tmp)(/|$)|^(-[A-Za-z])?/+$`, path)
}

inner("//") if input.command.program in {"bazel", "buck", "pants"}

# Writing to /usr is no reading of what is theirs.
writing if {
	some word in input.command.argv
	word in {"-w", "-i", "--write", "--fix", "--in-place", "-o", "--inplace"}
}

writing if input.command.program in {"black", "isort", "autopep8", "pyupgrade", "yapf", "ld", "ar"}
