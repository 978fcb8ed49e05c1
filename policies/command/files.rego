# cp, mv, rm and similar tools may change the workspace and /tmp. They must not change git's
# own files, files that configure tools, or paths that are known only at run time.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Files outside the workspace and /tmp must not change
# custom:
#   rule: files.place
#   severity: medium
#   category: files
#   match: [
#     "rm -rf /", "cp x /usr/bin/x", "mv x .git/hooks/pre-commit", "tee /etc/x", "touch .npmrc", "rm -rf .git",
#     "ln -s /etc/passwd x", "gzip -f /etc/hosts", "xz -k /etc/hosts", "patch .github/workflows/ci.yml x.patch", "cp x .git/hooks/pre-commit",
#     "cp x /tmp/r/.git/config", "bash -c 'cd /tmp'; cp x conftest.py", "cd /tmp/none; cp x conftest.py"
#   ]
#   not_match: ["mkdir -p out/x", "rm -rf dist", "cp a b", "cp /bin/sh /tmp/x", "tee out.log", "touch \"$tmp\"", "rm -rf /tmp/base/.git"]
deny contains lib.denial(
	"files.place",
	changed_why(w),
	changed_instead(w),
) if {
	input.command.program in lib.changers
	some i, w in input.command.operands
	changes_operand(i)
	not w.place in changeable
	not control_mode(w)
	not mode_word(w)
	not removed_copy(w)
}

changed_why(w) := sprintf("%s must not link to %q", [input.command.program, w.value]) if {
	input.command.program == "ln"
	not w.value == input.command.operands[count(input.command.operands) - 1].value
} else := sprintf("%s must not change %q", [input.command.program, w.value])

changed_instead(w) := "link to a file or a directory of the workspace" if {
	input.command.program == "ln"
	not w.value == input.command.operands[count(input.command.operands) - 1].value
} else := "write literal paths in the workspace or under /tmp"

# By another name, the workspace's own control files are not known as such.
deny contains lib.denial("files.place", "ln must not give the workspace another name", "link to a directory or a file below the workspace") if {
	input.command.program in {"ln", "cp"}
	symbolic
	some w in input.command.operands
	regex.match(`^/((workspace|home/user)(/[.]{1,2})?/*)?$`, w.value)
}

symbolic if input.command.program == "ln"

symbolic if {
	some o in input.command.options
	o.name in {"--symbolic", "--symbolic-link"}
}

# The copy of a repository that the run made may lose its .git.
removed_copy(w) if {
	input.command.program == "rm"
	startswith(w.value, "/tmp/")
	not ".." in split(w.value, "/")
	w.place == "control"
}

changes_operand(_) if input.command.program != "cp"

changes_operand(i) if i == count(input.command.operands) - 1

changes_operand(i) if input.command.operands[i].place == "git"

# A control file may become executable, and may be read.
control_mode(w) if {
	input.command.program in {"chmod", "split", "csplit"}
	w.place == "control"
}

changeable := {"workspace", "tmp", "null", "dynamic"}

mode_word(w) if {
	input.command.program in {"install", "truncate"}
	regex.match(`^[0-7]{3,4}$|^\d+[KMG]?$`, w.value)
}

# METADATA
# title: No set-user-ID, set-group-ID or sticky modes
# custom:
#   rule: files.mode
#   severity: medium
#   category: privilege
#   floor: true
#   match: ["chmod u+s x", "chmod 4755 x", "install -m 4755 a b"]
#   not_match: ["chmod +x gradlew", "chmod 755 x"]
deny contains lib.denial("files.mode", "set-user-ID, set-group-ID and sticky modes are not allowed", "make it executable only: `chmod +x FILE`") if {
	input.command.program in {"chmod", "install"}
	some word in input.command.argv
	regex.match(`^(=)?0?[2467][0-7]{3}$|[ugoa]*[+=][rwxX]*[st]`, word)
}

# METADATA
# title: Files are removed by name, not by a pattern that matches everything
# custom:
#   rule: files.removed
#   severity: low
#   category: files
#   match: ["cd \"$X\" && rm -rf *", "rm -rf *", "rm -rf ."]
#   not_match: [
#     "rm -f *.log", "rm -rf dist", "tmp=$(mktemp -d); rm -rf \"$tmp\"", "rm -f \"$f\"", "rm -rf build/*", "rm -rf \"$tmp\"",
#     "trap 'rm -rf \"$tmp\"' EXIT", "rm -rf \"$X\"/*", "rm -rf $(cat x)"
#   ]
deny contains lib.denial(
	"files.removed",
	sprintf("%s would remove everything in a directory", [input.command.program]),
	"name what to remove, or a directory that mktemp made",
) if {
	input.command.program == "rm"
	some word in input.command.argv
	regex.match(`^-[a-zA-Z]*[rR]|^--rec`, word)
	some w in input.command.operands
	open_ended(w)
}

open_ended(w) if w.star

open_ended(w) if w.value in {".", "./", ".."}

# METADATA
# title: Options write only to the workspace and /tmp
# custom:
#   rule: option.place
#   severity: medium
#   category: files
#   match: [
#     "sort -o /etc/x y", "sort -o/etc/x y", "sort --outp=/etc/x y", "sort -uo /etc/x y", "go build -o /usr/bin/x", "gcc -o /etc/x y.c",
#     "go test -coverprofile=/etc/x", "iconv -o /etc/x f", "csplit -f /etc/x f 1", "tsc --outFile /etc/x", "npx tsc --outDir .git/hooks",
#     "mypy --junit-xml /etc/x .", "python3 -m pytest --junitxml=/etc/x", "mktemp -p /etc", "tree -o /etc/x",
#     "gcc -Wl,-Map,.npmrc a.c", "gcc -Wp,-MD,.github/x a.c", "g++ -fdump-tree-all=.npmrc a.c", "clang -Wl,-o,sub/.npmrc a.c",
#     "uv run gcc -Wl,-Map,lefthook.yml a.c", "clang -ftime-trace=.npmrc a.c", "rustc --emit link=.npmrc a.rs"
#   ]
#   not_match: [
#     "go build -o /tmp/x ./cmd/x", "sort -o out x", "go build -o /dev/null ./...", "grep -o /etc/x y", "tsc --outDir dist",
#     "gcc -Wl,-Map,out.map a.c", "gcc -Wl,-rpath,.libs -Wl,-rpath,. a.c", "gcc -Wp,-MMD,.deps/a.d a.c", "gcc -Wl,-Map=/tmp/x.map a.c"
#   ]
deny contains lib.denial("option.place", written_elsewhere(e), "write to the workspace or under /tmp") if {
	some e in input.command.effects
	e.kind == "write"
	e.name != ""
	not e.place in changeable
	not commit_message(e.value)
}

written_elsewhere(e) := sprintf("%s %q may write a file that controls git or tools", [e.name, e.value]) if {
	e.place in {"git", "control"}
} else := sprintf("%s %q would write outside the workspace", [e.name, e.value])

# METADATA
# title: Tools that change the files they are given stay in the workspace and /tmp
# custom:
#   rule: operand.place
#   severity: medium
#   category: files
#   match: [
#     "uniq a /etc/b", "xxd -r a /etc/b", "shuf a /etc/x", "dos2unix -n a /etc/x", "dos2unix .git/config", "ar rcs /etc/x.a a.o", "split x /etc/y",
#     "gofmt -w /etc/x.go", "prettier --write /etc/x", "ptx -G a /etc/x", "mktemp /etc/x.XXXXXX", "shfmt -w .git/hooks/pre-commit",
#     "cp -r /tmp/x/. .", "mv /tmp/x .", "cd /tmp/none; cp -r /tmp/x/. .",
#     "tar -xzf /tmp/a.tgz", "unzip /tmp/a.zip -d sub", "ln -s \"$PWD/src\" /tmp/w; cp /tmp/conftest.py /tmp/w"
#   ]
#   not_match: [
#     "uniq -c a", "xxd -l 16 a", "dos2unix a.txt", "ar t a.a", "gofmt -l .", "prettier --check /usr/share/x", "black .",
#     "npx prettier --write package.json", "cp -r /tmp/x /tmp/y", "cp /tmp/x/*.txt docs", "cp conftest.py x.bak", "mv /tmp/x src/x.py",
#     "cd /tmp/x && tar xf a.tar", "tar tf /tmp/a.tar", "unzip /tmp/a.zip -d /tmp/x"
#   ]
deny contains lib.denial("operand.place", sprintf("%s must not write %q", [input.command.program, e.value]), "write in the workspace or under /tmp") if {
	some e in input.command.effects
	e.kind == "write"
	e.name == ""
	e.static
	not e.place in changeable
	not formatted(e)
}

# What the run made may have the name of a control file.
deny contains lib.denial(
	"operand.place",
	sprintf("%s would write files of %q under names that the text does not show", [input.command.program, e.value]),
	object.get(unpack_instead, input.command.program, "copy each file by its name: `cp /tmp/app bin/app`"),
) if {
	some e in input.command.effects
	e.kind == "write"
	e.name == ""
	not e.static
	e.place == "control"
	input.command.program in {"cp", "mv", "ln", "tar", "unzip"}
}

unpack_instead := {"tar": "unpack it below /tmp: `tar xf /tmp/a.tar -C /tmp/x`", "unzip": "unpack it below /tmp: `unzip /tmp/a.zip -d /tmp/x`"}

# Formatters may write control files.
formatted(e) if {
	running
	not input.command.tool in {"sphinx-build", "jupyter", "nbconvert"}
	e.place == "control"
}
