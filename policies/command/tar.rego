# tar may pack and unpack in the workspace and /tmp. Some of its options run programs or
# leave these directories, and its old spelling without dashes hides them.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: tar stays in the workspace and /tmp
# custom:
#   rule: tar.option
#   severity: medium
#   category: files
#   match: ["tar xf x -C /", "tar cf x --one-top-level=/etc", "tar tf /opt/x.tar --file=/opt/x.tar"]
#   not_match: ["tar tzf x.tgz", "tar -xzf x.tgz -C /tmp/x", "tar czf /tmp/x.tgz pkg"]
deny contains lib.denial("tar.option", sprintf("tar must not use %q", [o.value]), "use files and directories in the workspace and /tmp") if {
	input.command.program == "tar"
	some o in input.command.options
	o.name in {"--file", "--directory", "--one-top-level"}
	not tar_place(o)
}

tar_place(o) if {
	o.place in {"workspace", "tmp", "null", "dynamic"}
	not contains(o.value, ":")
}

tar_archive(w) if {
	w.place in {"workspace", "tmp", "dynamic"}
	not contains(w.value, ":")
}

# METADATA
# title: Some letters of tar's old spelling are denied
# custom:
#   rule: tar.old
#   severity: low
#   category: usage
#   match: ["tar xIf sh x", "tar xPf x", "tar cf h:x y", "tar cPf x y", "tar xFf sh x", "tar xCf / x"]
#   not_match: ["tar xzf x.tgz", "tar tvf x.tar", "tar -cf - x"]
deny contains lib.denial("tar.old", "this letter in tar's old spelling takes a program or a path", "write options with dashes") if {
	input.command.program == "tar"
	w := input.command.operands[0].value
	input.command.argv[0] == w
	not regex.match(`^[cxtruvzjJpkmOZahw]*f?[vzj]*$`, w)
}

deny contains lib.denial("tar.old", "tar's archive is outside the workspace", "use files in the workspace and /tmp") if {
	input.command.program == "tar"
	input.command.argv[0] == input.command.operands[0].value
	not tar_archive(input.command.operands[1])
}
