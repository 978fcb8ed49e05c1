# Paths in the arguments of a build, test or check tool, whatever the option, must be in
# the workspace or under /tmp, or be the tool's own read-only files below /usr.
package fumehood.command

import data.fumehood.lib

deny contains lib.denial("code.outside", sprintf("%q must not be written", [p.value]), "write in the workspace or under /tmp") if {
	some p in input.command.paths
	input.command.program in lib.runners
	writing
	startswith(p.value, "/usr/")
}

# METADATA
# title: Build, test and check tools use only paths in the workspace and /tmp
# custom:
#   rule: code.outside
#   severity: medium
#   category: files
#   match: [
#     "ruff check --config=/opt/x.toml .", "phpunit --bootstrap /opt/x.php", "./gradlew -p /opt/x test", "bazel --output_user_root=/etc/x test",
#     "node --redirect-warnings=/etc/x a.js", "gcc -I/opt/evil a.c", "pytest -c /tmp/../etc/x.ini", "node -r /opt/x.js y",
#     "eslint --resolve-plugins-relative-to /opt .", "cargo --config /opt/x.toml test", "mypy --config-file=/etc/x .",
#     "pytest --rootdir=/ -p evil", "node --import /opt/x.mjs y", "npm --prefix /opt test", "just -f .git/x", "pytest .git/x.py"
#   ]
#   not_match: ["gcc -I/usr/include/x a.c", "cmake -S . -B /tmp/build", "bazel test //pkg:x", "pytest -k 'a/b'", "ruff check --exclude .git ."]
deny contains lib.denial("code.outside", sprintf("%q is outside the workspace and /tmp", [p.value]), "use files in the workspace, and write under /tmp") if {
	some p in input.command.paths
	running
	not p.place in {"workspace", "tmp", "null", "control", "url"}
	not theirs(p.value)
	not no_folder(p.value)
}

# git writes there what a text says: a message is a file that a tool may take for its own.
deny contains lib.denial("code.outside", sprintf("%q is one of git's own files, and no code of the repository", [value]), "name a file of the repository") if {
	input.command.program in lib.runners
	some value in git_files
}

git_files contains w.value if {
	some w in input.command.operands
	w.place == "git"
	not commit_message(w.value)
}

# What checks commit messages reads the one that git keeps.
commit_message(file) if {
	input.command.tool in {"commitlint", "gitlint"}
	file == ".git/COMMIT_EDITMSG"
}

git_files contains o.value if {
	some o in input.command.options
	o.place == "git"
	not commit_message(o.value)
	not regex.match(`^(?i:.*(ignore|exclu|skip|filter|omit).*|-k|-C)$`, o.name)
}

# Read-only files of their own that compilers and interpreters may name.
theirs(path) if regex.match(`^/usr/(include|lib|local/include|local/lib|share)(/|$)`, path)

# A word that does not begin like a system directory is a route, a label or a pattern:
# /api/users, //pkg:target, s/a/b/.
no_folder(path) if {
	startswith(path, "/")
	not regex.match(system_place, path)
}

system_place := concat("", [
	`^/+(etc|usr|bin|sbin|lib\w*|opt|var|root|home|proc|sys|dev|boot|run|srv|mnt|media|snap|workspace`,
	`|tmp)(/|$)|^/+$`,
])

no_folder("//") if input.command.program in {"bazel", "buck", "pants"}

# Writing to /usr is not reading a tool's own files.
writing if {
	some word in input.command.argv
	word in {"-w", "-i", "--write", "--fix", "--in-place", "-o", "--inplace"}
}

writing if input.command.program in {"black", "isort", "autopep8", "pyupgrade", "yapf", "ld", "ar"}
