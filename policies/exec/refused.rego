package fumehood.exec

import data.fumehood.lib

# Programs are denied by the name of the file, with links resolved, and by the names of
# the programs that the file is a copy of. A file that is many tools in one (busybox) is
# also denied by the tool that its arguments select.

refused contains [name, lib.refused[name]] if {
	not input.loaded # whose name is that of a library
	some name in input.names
}

# METADATA
# title: Network clients need granted hosts
# custom:
#   rule: exec.network
#   severity: medium
#   category: network
#   match: [
#     {path: /usr/bin/curl}, {path: /usr/bin/nc.openbsd}, {path: /usr/lib/git-core/git-remote-https},
#     {path: /tmp/x, layer: written, grants: [built], same: [/usr/bin/wget]}, {path: /usr/bin/busybox, argv: [busybox, nc, -e, sh]},
#     {path: /bin/busybox, argv: [wget, x]}, {path: /usr/bin/ssh, argv: [git]}
#   ]
#   not_match: [
#     {path: /usr/bin/git}, {path: /usr/bin/curl, grants: [network]}, {path: /usr/bin/busybox, argv: [ls]}, {path: /usr/bin/git, argv: [curl]},
#     {path: /usr/bin/psql}, {path: /usr/bin/curl, grants: [localhost]}
#   ]
deny contains lib.denial(
	"exec.network",
	sprintf("%s needs the network, and no hosts were granted to this command", [name]),
	"use what is already in the repository or installed",
) if {
	some [name, "network"] in refused
	not "network" in input.grants
	not local_client(name)
}

# local_client is true for the clients of servers that the command started itself.
local_client(name) if {
	name in {"curl", "wget", "nc", "ncat", "netcat"}
	"localhost" in input.grants
}

deny contains lib.denial(
	"exec.network",
	sprintf("%s needs the network, and no hosts were granted to this command", [input.tool]),
	"use what is already in the repository or installed",
) if {
	input.many == true
	lib.refused[input.tool] == "network"
	not "network" in input.grants
}

# METADATA
# title: Programs that need privileges, namespaces or containers are denied
# custom:
#   rule: exec.privilege
#   floor: true
#   severity: high
#   category: privileges
#   match: [
#     {path: /usr/bin/sudo}, {path: /usr/bin/unshare, parent_path: /usr/bin/make}, {path: /usr/bin/docker},
#     {path: /usr/bin/busybox, argv: [busybox, busybox, su]}, {path: /workspace/tool, layer: written, grants: [built], same: [/usr/bin/nsenter]},
#     {path: /usr/bin/sudo.ws}, {path: /usr/bin/docker, argv: [docker, compose, config]},
#     {path: /usr/bin/docker, argv: [docker, compose, up], grants: [compose]}, {path: /usr/bin/docker, argv: [docker, ps], grants: [built, compose]},
#     {path: /usr/libexec/docker/cli-plugins/docker-compose, argv: [docker-compose, docker-cli-plugin-metadata]},
#     {path: /workspace/docker-compose, argv: [docker-compose, config], layer: written, grants: [built, compose]}
#   ]
#   not_match: [
#     {path: /usr/bin/chown}, {path: /usr/sbin/ldconfig}, {path: /usr/bin/sum}, {path: /usr/bin/busybox, argv: [busybox, chown, x]},
#     {path: /usr/bin/docker, argv: [docker, compose, config], grants: [compose]},
#     {path: /usr/libexec/docker/cli-plugins/docker-compose, argv: [docker-compose, compose, -f, x.yaml, config], grants: [compose]},
#     {path: /usr/libexec/docker/cli-plugins/docker-compose, argv: [docker-compose, docker-cli-plugin-metadata], grants: [compose]}
#   ]
deny contains lib.denial(
	"exec.privilege",
	sprintf("%s needs privileges, services or another namespace", [name]),
	"remove it: the sandbox has no root user and no services",
) if {
	some [name, "privilege"] in refused
	not composer(name)
}

# composer is true for docker and its compose plugin in a command whose text has `docker compose config`.
composer(name) if {
	name == input.name
	name in {"docker", "docker-compose"}
	"compose" in input.grants
	input.layer == "rootfs"
}

deny contains lib.denial(
	"exec.privilege",
	sprintf("%s needs a service for containers, which the sandbox does not have", [input.name]),
	"check the files: `docker compose config`",
) if {
	composer(input.name)
	not composing
}

composing if {
	not input.argv_cut
	lib.composes(input.name, array.slice(input.argv, 1, count(input.argv)))
}

# docker asks its plugin what it is, and then gives it its own words.
composing if {
	input.name == "docker-compose"
	array.slice(input.argv, 1, count(input.argv)) == ["docker-cli-plugin-metadata"]
}

deny contains lib.denial(
	"exec.privilege",
	sprintf("%s needs privileges, services or another namespace", [input.tool]),
	"remove it: the sandbox has no root user and no services",
) if {
	input.many == true
	lib.refused[input.tool] == "privilege"
}

# METADATA
# title: Programs must not be started through the dynamic loader
# description: >-
#   ld.so runs any readable file, so the decision would be about the loader's name and digest and not about the
#   program's. The loader is recognized by its name, as a copy, and by its ELF headers. A program with its own loader
#   is denied, too.
# custom:
#   rule: exec.loader
#   floor: true
#   severity: high
#   category: evasion
#   match: [
#     {path: /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2, argv: [ld.so, /usr/bin/id]}, {path: /lib/ld-musl-x86_64.so.1},
#     {path: /usr/lib/x86_64-linux-gnu/libc.so.6}, {path: /tmp/x, layer: written, grants: [built], same: [/usr/lib/x86_64-linux-gnu/ld-2.31.so]},
#     {path: /lib64/ld64.so.2}, {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, loader: true}},
#     {path: /workspace/z, layer: workspace, grants: [built], elf: {type: dyn, interpreter: /lib64/ld-linux-x86-64.so.2, soname: libc.so.6}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: exec, interpreter: /usr/bin/gh}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, interpreter: /tmp/ld.so}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, interpreter: /usr/../tmp/ld.so}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, interpreter: ld.so}}, {path: /usr/bin/busybox, argv: [""]}
#   ]
#   not_match: [
#     {path: /usr/bin/ld}, {path: /usr/bin/x86_64-linux-gnu-ld.gold}, {path: /usr/bin/soelim},
#     {path: /tmp/x.test, layer: written, grants: [built], elf: {type: exec, static: true}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, interpreter: /lib64/ld-linux-x86-64.so.2}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, interpreter: /lib/ld-musl-x86_64.so.1}},
#     {path: /tmp/x, layer: written, grants: [built], elf: {type: dyn, static: true}},
#     {path: /nix/store/x/bin/x, elf: {type: dyn, interpreter: /nix/store/y-glibc/lib/ld-linux-x86-64.so.2}}
#   ]
deny contains lib.denial(
	"exec.loader",
	sprintf("%s is the loader or a library, which can run any program", [name]),
	"start the program itself; to list its libraries, use readelf -d",
) if {
	not input.loaded
	some name in input.names
	lib.loader(name)
}

deny contains lib.denial(
	"exec.loader",
	sprintf("%q is a dynamic loader by its ELF headers, and can run any program", [input.path]),
	"start the program itself; to list its libraries, use readelf -d",
) if {
	not input.loaded
	input.elf.loader
}

deny contains lib.denial(
	"exec.loader",
	sprintf("%q is a changed copy of the library %s, which can run any program", [input.path, input.elf.soname]),
	"start the program itself; to list its libraries, use readelf -d",
) if {
	not input.loaded
	input.layer != "rootfs"
	lib.loader(input.elf.soname)
}

deny contains lib.denial(
	"exec.loader",
	sprintf("%q needs the loader %q, which is not the root file system's", [input.path, input.elf.interpreter]),
	"build it for the loader of the root file system",
) if {
	not input.loaded
	input.layer != "rootfs"
	input.elf.interpreter != ""
	not loader_path(input.elf.interpreter)
}

# Without a name it may become any of its tools. A program that another one maps has none.
deny contains lib.denial(
	"exec.loader",
	sprintf("which tool %q would run is not known", [input.path]),
	"start the tool by its name",
) if {
	input.many == true
	input.argv[0] == ""
}

# loader_path is true for the path of a loader in a read-only directory.
loader_path(path) if {
	regex.match(`^/(usr|lib|lib32|lib64|libx32|opt|nix/store|gnu/store)/([^/]+/)*ld[\w.-]*\.so(\.\d+)*$`, path)
	not ".." in split(path, "/")
}

# METADATA
# title: git starts only its own programs, unless the command may run the repository's code
# description: >-
#   The repository's configuration names programs that git starts (textconv, filters, drivers, diff.external,
#   fsmonitor, hooks). A command that only reads the repository must not start them.
# custom:
#   rule: exec.git
#   severity: medium
#   category: code
#   match: [
#     {path: /usr/bin/dash, from: /usr/bin/git, argv: [sh, -c, ./textconv]},
#     {path: /usr/bin/python3.11, from: /usr/lib/git-core/git, grants: [network]}, {path: /usr/bin/less, from: /usr/bin/git},
#     {path: /usr/bin/cat, from: /usr/libexec/git-core/git-remote-https}, {path: /usr/bin/bash, from: /usr/bin/git, script: /usr/share/x},
#     {path: /usr/lib/git-core/git-difftool--helper, from: /usr/bin/git},
#     {path: /usr/bin/dash, from: /usr/bin/git, script: /usr/lib/git-core/git-difftool--helper},
#     {path: /usr/bin/git-annex, from: /usr/bin/git, elf: {type: dyn}},
#     {path: /usr/lib/git-core/git-submodule, from: /usr/bin/git, argv: [git-submodule, update]},
#     {path: /usr/bin/dash, from: /usr/bin/git, script: /usr/lib/git-core/git-submodule, argv: [/bin/sh, /usr/lib/git-core/git-submodule, foreach]}
#   ]
#   not_match: [
#     {path: /usr/bin/git, from: /usr/bin/git}, {path: /usr/lib/git-core/git-remote-https, from: /usr/bin/git, elf: {type: dyn}},
#     {path: /usr/lib/git-core/git-submodule, from: /usr/bin/git, argv: [git-submodule, status]},
#     {path: /usr/bin/dash, from: /usr/bin/git, script: /usr/lib/git-core/git-submodule, argv: [/bin/sh, /usr/lib/git-core/git-submodule, status]},
#     {path: /usr/bin/dash, from: /usr/bin/git, grants: [built]}, {path: /usr/bin/git, from: /usr/bin/bash},
#     {path: /usr/bin/sed, from: /usr/bin/dash}
#   ]
deny contains lib.denial(
	"exec.git",
	sprintf("git must not start %s, which the repository's configuration names", [input.path]),
	"ignore the repository's configuration: git diff --no-ext-diff --no-textconv",
) if {
	not "built" in input.grants
	input.layer == "rootfs" # any other is refused anyway
	not git_program
	regex.match(`(^|/)git-core/|(^|/)git(-[^/]*)?$`, input.from)
	not git_script
}

git_program if regex.match(`(^|/)git$`, input.path)

git_program if {
	regex.match(`(^|/)git-core/[^/]+$`, input.path)
	input.elf.type != ""
}

# Some of git's programs are scripts. Most of them run programs that configuration names
# (git-difftool--helper), and so do some verbs of the others (git submodule update).
git_script if {
	regex.match(`(^|/)git-core/git-(submodule|bisect)$`, input.path)
	input.argv[1] in git_script_verbs
}

git_script if {
	regex.match(`(^|/)git-core/git-(submodule|bisect)$`, input.script)
	some word in array.slice(input.argv, 2, 4)
	word in git_script_verbs
}

git_script_verbs := {"status", "summary", "start", "good", "bad", "old", "new", "skip", "reset", "log", "terms"}

# METADATA
# title: Debuggers are denied
# custom:
#   rule: exec.debugger
#   severity: high
#   category: privilege
#   floor: true
#   match: [
#     {path: /usr/bin/gdb}, {path: /usr/bin/strace}, {path: /usr/bin/perf_6.1}, {path: /usr/bin/lldb-server-14.0.6},
#     {path: /usr/bin/gdb, grants: [built]}, {path: /usr/bin/rr, grants: [trace]}
#   ]
#   not_match: [{path: /usr/bin/time}, {path: /usr/bin/valgrind}, {path: /usr/bin/strace, grants: [trace]}]
deny contains lib.denial(
	"exec.debugger",
	sprintf("%s can take over other processes, and their names would no longer be meaningful", [name]),
	"print what you need to know from the test itself",
) if {
	some [name, "debugger"] in refused
	not tracer(name)
}

# tracer is true for the tools whose use the text of the command shows.
tracer(name) if {
	name in {"gdb", "strace", "ltrace", "perf"}
	"trace" in input.grants
}

# METADATA
# title: Variables that load other code into a program are denied
# description: LD_LIBRARY_PATH is allowed for commands that may run the repository's code, since cargo and libtool set it for all programs that they start.
# custom:
#   rule: exec.preload
#   floor: true
#   severity: high
#   category: evasion
#   match: [{env: [LD_PRELOAD], grants: [built]}, {env: [LD_AUDIT]}, {env: [LD_LIBRARY_PATH]}, {env: [PYTHONPATH, GCONV_PATH], grants: [built]}]
#   not_match: [{env: [LD_LIBRARY_PATH], grants: [built]}, {env: [PYTHONPATH]}, {path: /tmp/x.test, layer: written, env: [LD_PRELOAD], grants: [built]}]
deny contains lib.denial("exec.preload", sprintf("%s loads other code into %s", [name, input.path]), "remove the variable") if {
	input.layer == "rootfs"
	some name in input.env
	loading(name)
}

loading(name) if name in {"LD_PRELOAD", "LD_AUDIT", "LD_PROFILE", "GCONV_PATH"}

loading(name) if {
	startswith(name, "LD_")
	not "built" in input.grants
}
