package fumehood.command

import data.fumehood.lib

# METADATA
# title: Change files in the workspace and /tmp only
# custom:
#   rule: files.place
#   match: ["rm -rf /", "cp x /usr/bin/x", "mv x .git/hooks/pre-commit", "tee /etc/x", "touch .npmrc", "rm -rf .git", "cp /bin/sh /tmp/x", "ln -s /etc/passwd x"]
#   not_match: ["mkdir -p out/x", "rm -rf dist", "cp a b", "tee out.log", "touch \"$tmp\""]
deny contains lib.denial("files.place", sprintf("%s reaches %q outside what a command may change", [input.command.program, w.value]), "name paths in the workspace or under /tmp, literally") if {
	input.command.program in lib.changers
	not input.command.program in {"chmod", "cp", "split", "csplit", "patch"}
	some w in input.command.operands
	not w.place in changeable
	not mode_word(w)
}

changeable := {"workspace", "tmp", "null", "dynamic"}

mode_word(w) if {
	input.command.program in {"install", "truncate"}
	regex.match(`^[0-7]{3,4}$|^\d+[KMG]?$`, w.value)
}

deny contains lib.denial("files.place", sprintf("unzip would write to %q", [w.value]), "unpack into the workspace or under /tmp") if {
	input.command.program == "unzip"
	some word in input.command.argv
	startswith(word, "-d")
	some w in input.command.operands
	not w.place in changeable
}

deny contains lib.denial("files.place", sprintf("unzip would write to %q", [o.value]), "unpack into the workspace or under /tmp") if {
	input.command.program == "unzip"
	some o in input.command.options
	o.name == "-d"
	not o.place in changeable
}

deny contains lib.denial("files.place", sprintf("cp may not write to or copy programs from %q", [w.value]), "copy files of the workspace to the workspace or /tmp") if {
	input.command.program in {"cp", "chmod", "split", "csplit", "patch"}
	some w in input.command.operands
	not w.place in changeable
	w.place != "control"
}

deny contains lib.denial("files.place", sprintf("cp may not write the control file %q", [w.value]), "copy it under another name") if {
	input.command.program == "cp"
	w := input.command.operands[count(input.command.operands) - 1]
	w.place == "control"
}

deny contains lib.denial("files.place", sprintf("%s reaches %q outside what a command may change", [input.command.program, word]), "name paths in the workspace or under /tmp") if {
	input.command.program in lib.changers
	some word in input.command.argv
	regex.match(`^(-t|--target-directory=?|-d)(/|\.\./|~)`, word)
	not regex.match(`^[^/]*/tmp/`, word)
}

# METADATA
# title: No special modes
# custom:
#   rule: files.mode
#   match: ["chmod u+s x", "chmod 4755 x", "install -m 4755 a b"]
#   not_match: ["chmod +x gradlew", "chmod 755 x"]
deny contains lib.denial("files.mode", "a set-user-id mode has no use here", "use chmod +x") if {
	input.command.program in {"chmod", "install"}
	some word in input.command.argv
	regex.match(`^(=)?0?[2467][0-7]{3}$|[ugoa]*[+=][rwxX]*[st]`, word)
}

# METADATA
# title: Options that write go to the workspace and /tmp
# custom:
#   rule: option.place
#   match: ["sort -o /etc/x y", "sort -o/etc/x y", "sort --outp=/etc/x y", "go build -o /usr/bin/x", "gcc -o /etc/x y.c", "go test -coverprofile=/etc/x"]
#   not_match: ["go build -o /tmp/x ./cmd/x", "sort -o out x", "go build -o /dev/null ./..."]
deny contains lib.denial("option.place", sprintf("%s %q writes outside the workspace", [o.name, o.value]), "write to the workspace or under /tmp") if {
	some o in input.command.options
	o.name in writing_options
	o.value != ""
	not o.place in changeable
	not input.command.program in {"grep", "egrep", "fgrep", "rg", "ls", "ps", "python3", "find", "java", "test", "[", "set", "date", "jq", "yq", "bash", "sh"}
}

writing_options := {"--output", "-o", "--temporary-directory", "-coverprofile", "-cpuprofile", "-memprofile", "-blockprofile", "-mutexprofile", "-trace", "-outputdir", "-pkgdir", "--output-file", "--target-dir", "--junitxml", "--junit-xml", "--basetemp", "--log-file", "--outfile", "--outDir", "--out", "--out-dir", "--cache-location", "--output-document", "--cov-report", "--coverageDirectory", "-MF", "--html", "--index-file", "--listed-incremental"}

# METADATA
# title: uniq and xxd write where their last operand says
# custom:
#   rule: operand.place
#   match: ["uniq a /etc/b", "xxd -r a /etc/b", "shuf a /etc/x"]
#   not_match: ["uniq -c a", "xxd -l 16 a"]
deny contains lib.denial("operand.place", sprintf("%s would write %q", [input.command.program, w.value]), "redirect the output to the workspace or /tmp") if {
	input.command.program in {"uniq", "xxd", "unzip", "file", "shuf"}
	some i, w in input.command.operands
	i > 0
	not w.place in changeable
}

# METADATA
# title: tar runs no program and stays in place
# custom:
#   rule: tar.option
#   match: ["tar cf x --checkpoint=1 --checkpoint-action=exec=sh x", "tar xf x --to-command=sh", "tar -I sh -cf x y", "tar xf x -C /", "tar cf x --use-comp=sh y", "tar -F sh -cf x y"]
#   not_match: ["tar tzf x.tgz", "tar -xzf x.tgz -C /tmp/x", "tar czf /tmp/x.tgz pkg"]
deny contains lib.denial("tar.option", sprintf("tar's %s %s", [o.name, tar_options[o.name]]), "leave the option out") if {
	input.command.program == "tar"
	some o in input.command.options
	tar_options[o.name]
}

tar_options := {
	"--checkpoint-action": "runs a program", "--checkpoint": "is only of use with an action", "--to-command": "runs a program", "--use-compress-program": "runs a program", "--rsh-command": "runs a program", "--rmt-command": "runs a program",
	"--info-script": "runs a program", "--absolute-names": "writes outside", "--multi-volume": "asks at a terminal", "--interactive": "asks at a terminal", "--remove-files": "removes what it packs", "--files-from": "may hold options", "--volno-file": "writes a file",
}

deny contains lib.denial("tar.option", sprintf("tar reaches %q", [o.value]), "use files and folders of the workspace and /tmp") if {
	input.command.program == "tar"
	some o in input.command.options
	o.name in {"--file", "--directory", "--one-top-level"}
	not tar_place(o)
}

tar_place(o) if {
	o.place in {"workspace", "tmp", "null"}
	o.static
	not contains(o.value, ":")
}

tar_archive(w) if {
	w.place in {"workspace", "tmp"}
	not contains(w.value, ":")
}

# METADATA
# title: tar's old spelling without a dash
# custom:
#   rule: tar.old
#   match: ["tar xIf sh x", "tar xPf x", "tar cf h:x y", "tar cPf x y", "tar xFf sh x", "tar xCf / x"]
#   not_match: ["tar xzf x.tgz", "tar tvf x.tar", "tar -cf - x"]
deny contains lib.denial("tar.old", "this letter in tar's old spelling takes a program or a place", "write options with dashes") if {
	input.command.program == "tar"
	w := input.command.operands[0].value
	input.command.argv[0] == w
	not regex.match(`^[cxtruvzjJpkmOZahw]*f?[vzj]*$`, w)
}

deny contains lib.denial("tar.old", "tar's archive lies elsewhere", "use files of the workspace and /tmp") if {
	input.command.program == "tar"
	input.command.argv[0] == input.command.operands[0].value
	not tar_archive(input.command.operands[1])
}
