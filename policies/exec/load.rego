package fumehood.exec

import data.fumehood.lib

# A file that a program loads as code (a library, a plugin, an extension) is decided like one
# that it starts. Files of the root file system are loaded without a question.

# METADATA
# title: Code that is in the pull request or that is made in the sandbox, if the command may start programs from there
# description: Where the file is does not matter, since what may start can make any code in its own memory.
# custom:
#   rule: exec.loaded
#   match: [
#     {path: /workspace/.venv/lib/x.so, layer: written, loaded: true, grants: [built]},
#     {path: /workspace/x.so, layer: workspace, loaded: true, grants: [built]},
#     {path: "/memfd:x (deleted)", layer: memory, loaded: true, grants: [built]}, {path: /mnt/x.so, layer: other, loaded: true, grants: [built]}
#   ]
#   not_match: [
#     {path: /workspace/x.so, layer: workspace, loaded: true}, {path: /mnt/x, layer: other, grants: [built]},
#     {path: /workspace/x.so, layer: written, loaded: true, grants: [network]}
#   ]
allow contains {"rule": "exec.loaded"} if {
	input.loaded
	"built" in input.grants
}

# METADATA
# title: Commands that do not run the repository's code must not load it
# description: >-
#   A compiler's plugin, an extension of an interpreter and a library of LD_PRELOAD run in the program that loads
#   them. The loader then reports "failed to map segment from shared object".
# custom:
#   rule: exec.load
#   severity: high
#   category: evasion
#   match: [
#     {path: /workspace/x.so, layer: workspace, loaded: true, from: /usr/lib/gcc/x86_64-linux-gnu/12/cc1},
#     {path: /tmp/x.so, layer: written, loaded: true},
#     {path: /workspace/x.so, layer: written, loaded: true, grants: [network], from: /usr/bin/python3.11},
#     {path: "/memfd:x (deleted)", layer: memory, loaded: true}, {path: /mnt/x.so, layer: other, loaded: true}
#   ]
#   not_match: [
#     {path: /workspace/x.so, layer: workspace, loaded: true, grants: [built]}, {path: /usr/lib/x86_64-linux-gnu/libc.so.6, loaded: true},
#     {path: /workspace/x, layer: workspace}
#   ]
deny contains lib.denial(
	"exec.load",
	sprintf("%s loads %q, which is from the pull request or was made in the sandbox, and this command may not run such code", [input.from, input.path]),
	"load it in a command that runs the repository's code: its tests, its build, or ./path",
) if {
	input.loaded
	input.layer != "rootfs"
	not "built" in input.grants
}
