package fumehood.exec

# Every program that starts in the sandbox is decided here, no matter what starts it: a
# shell, make, a test, xargs. The sandbox contains what the program does then: a newly
# written program can do whatever a denied one would have done.

# METADATA
# title: Programs of the root file system, which is read-only in the sandbox
# custom:
#   rule: exec.rootfs
#   match: [{path: /usr/bin/git}, {path: /usr/local/go/bin/go}, {path: /usr/lib/gcc/x86_64-linux-gnu/13/cc1}, {path: /usr/lib/node_modules/npm/bin/npm-cli.js}]
#   not_match: [{path: /workspace/x, layer: workspace}, {path: /usr/bin/git, layer: other}, {path: /usr/bin/git, layer: ""}]
allow contains {"rule": "exec.rootfs"} if input.layer == "rootfs"

# METADATA
# title: Programs that are in the pull request or that it builds, if the command may start them
# custom:
#   rule: exec.built
#   match: [
#     {path: /workspace/gradlew, layer: workspace, grants: [built]}, {path: /tmp/go-build1/b001/x.test, layer: written, grants: [built]},
#     {path: /workspace/node_modules/.bin/jest, layer: written, grants: [built]}
#   ]
#   not_match: [
#     {path: /workspace/gradlew, layer: workspace}, {path: /tmp/x, layer: written, grants: [network]},
#     {path: /memfd:x, layer: memory, grants: [built]}, {path: /x, layer: other, grants: [built]}
#   ]
allow contains {"rule": "exec.built"} if {
	input.layer in {"workspace", "written"}
	"built" in input.grants
}
