package fumehood.exec

import data.fumehood.lib

# METADATA
# title: Commands that do not run the repository's code must not start its programs
# custom:
#   rule: exec.grant
#   severity: medium
#   category: code
#   match: [{path: /workspace/evil, layer: workspace}, {path: /tmp/id, layer: written}, {path: /home/fumehood/x, layer: written, grants: [network]}]
#   not_match: [{path: /tmp/x.test, layer: written, grants: [built]}, {path: /usr/bin/id}]
deny contains lib.denial(
	"exec.grant",
	sprintf("%q is from the pull request or was made in the sandbox, and this command may not start such programs", [input.path]),
	"run it in a separate command: ./path",
) if {
	not input.loaded
	input.layer in {"workspace", "written"}
	not "built" in input.grants
}

# METADATA
# title: Programs must be files
# custom:
#   rule: exec.memory
#   severity: high
#   category: code
#   floor: true
#   match: [{path: "/memfd:x (deleted)", layer: memory, grants: [built]}, {path: /proc/self/fd/3, layer: memory}]
#   not_match: [{path: /tmp/x, layer: written, grants: [built]}, {path: "/memfd:doublemapper (deleted)", layer: memory, loaded: true, grants: [built]}]
deny contains lib.denial(
	"exec.memory",
	"the program is only in memory, or in a file without a name",
	"write it to a file in the workspace or /tmp",
) if {
	not input.loaded
	input.layer == "memory"
}

# METADATA
# title: Programs start only from known directories
# custom:
#   rule: exec.place
#   severity: medium
#   category: code
#   match: [
#     {path: /mnt/x, layer: other, grants: [built]}, {path: /proc/1/exe, layer: other}, {path: /etc/init.d/x}, {path: /tmp/x, layer: rootfs},
#     {path: /workspace/x, layer: rootfs, grants: [built]}, {path: /usr/../tmp/x}, {path: x}
#   ]
#   not_match: [
#     {path: /usr/bin/git}, {path: /opt/hostedtoolcache/go/1.26.0/x64/bin/go}, {path: /usr/local/cargo/bin/rustc}, {path: /.fumehood/init},
#     {path: /home/circleci/go/bin/gotestsum}
#   ]
deny contains lib.denial(
	"exec.place",
	sprintf("%q is not in a directory for programs", [input.path]),
	"use programs of the root file system and of the workspace",
) if {
	not input.loaded
	input.layer == "other"
}

deny contains lib.denial(
	"exec.place",
	sprintf("%q is not in a directory for programs of the root file system", [input.path]),
	"use programs of the root file system and of the workspace",
) if {
	input.layer == "rootfs"
	regex.match(`^/(etc|var|proc|sys|dev|run|boot|tmp|workspace|home/fumehood)(/|$)|^[^/]|(^|/)\.\.?(/|$)|^$`, input.path)
}
