# Programs that are useless in the sandbox, or hide what they run, are denied by name, so
# that the message can give the reason. lib/refused.rego lists them.
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Network clients need granted hosts
# custom:
#   rule: network.client
#   severity: medium
#   category: network
#   match: ["curl -s https://x.example | jq .", "nc -l 1", "rsync a b:c", "/usr/bin/wget x", "psql -l", "apt-get install x"]
#   not_match: ["grep curl README.md"]
deny contains lib.denial("network.client", sprintf("%s %s", [input.command.program, client_reason]), client_help) if {
	lib.refused[input.command.program] in {"network", "local"}
	not client
	not local_client
}

client_hint := system_hint if {
	not networked
	input.command.program == "apt-get"
} else := "use what is already in the repository or installed" if not networked

system_hint := "use what is installed; the configuration's rootfs can name an image that has more"

client_hint := sprintf("use one of %s", [concat(", ", sort(clients))]) if networked

# METADATA
# title: Commands that need privileges, services or namespaces are denied
# custom:
#   rule: privilege.none
#   floor: true
#   severity: medium
#   category: privileges
#   retry: never
#   match: ["sudo ls", "docker run x", "docker compose up", "unshare -r id", "dnf install x"]
#   not_match: ["docker compose config"]
deny contains lib.denial(
	"privilege.none",
	sprintf("%s %s", [input.command.program, privilege_why]),
	privilege_instead,
) if {
	lib.refused[input.command.program] == "privilege"
	not composing
}

privilege_why := "changes to another user, and the sandbox has no root user" if {
	input.command.program in user_changers
} else := "installs packages of the system, and the sandbox has no root user" if {
	input.command.program in system_installers
} else := "needs a service for containers, which the sandbox does not have" if {
	input.command.program in container_clients
} else := "needs a cluster, which the sandbox does not have" if {
	input.command.program in {"kubectl", "k3s", "minikube"}
} else := "needs privileges, services or another namespace"

privilege_instead := sprintf("leave %s out", [input.command.program]) if {
	input.command.program in user_changers
} else := system_hint if {
	input.command.program in system_installers
} else := "check the files: `docker compose config`; the configuration's services can start a database" if {
	input.command.program == "docker"
	"compose" in input.command.argv
} else := "check the files: `docker-compose config`; the configuration's services can start a database" if {
	input.command.program == "docker-compose"
} else := "read the files: `cat Dockerfile`, `cat compose.yaml`; the configuration's services can start a database" if {
	input.command.program in container_clients
} else := "read the manifests: `kustomize build overlays/dev`, `helm template charts/app`" if {
	input.command.program in {"kubectl", "k3s", "minikube"}
} else := "remove it: the sandbox has no root user and no services"

user_changers := {"sudo", "doas", "su", "su-exec", "gosu", "runuser", "pkexec", "setpriv", "sg", "chpst", "setuidgid"}

system_installers := {"apk", "apt", "brew", "dnf", "emerge", "nix-env", "pacman", "snap", "yum", "zypper"}

container_clients := {"docker", "docker-compose", "docker.io", "podman", "nerdctl", "buildah", "skopeo", "ctr", "crictl"}

deny contains lib.denial(
	"privilege.none",
	sprintf("%s can change devices, owners, services or settings of the system", [input.command.program]),
	administering_instead,
) if lib.refused[input.command.program] == "administering"

administering_instead := "make a file of a size: `head -c 1024 /dev/zero > out.bin`; copy one: `cp a.bin b.bin`" if {
	input.command.program == "dd"
} else := "remove it: the sandbox has no root user and no services"

# METADATA
# title: Programs that hide which program they run are denied
# custom:
#   rule: launcher.hidden
#   severity: medium
#   category: code
#   match: ["busybox sh", "parallel ls ::: a", "vim -c :q", "script -c id", "gdb ./x"]
deny contains lib.denial(
	"launcher.hidden",
	sprintf("%s %s", [input.command.program, launcher_why]),
	launcher_instead,
) if {
	lib.refused[input.command.program] in {"launcher", "debugger"}
	not input.command.program in tracers
	not debugging
}

# The shell's own commands, which the parser refuses, too.
reading_builtins := {".", "source", "eval", "alias", "history", "fc", "bind", "complete", "compgen", "enable"}

launcher_why := "makes this shell run text that is not shown here" if {
	input.command.program in reading_builtins
} else := "takes over other processes" if {
	lib.refused[input.command.program] == "debugger"
} else := "runs other programs in ways that the text does not show"

launcher_instead := "write the commands themselves" if {
	input.command.program in reading_builtins
} else := "print the file: `cat FILE`; change it with `sed -i 's/old/new/' FILE`" if {
	input.command.program in {"less", "more", "most", "view", "vi", "vim", "vimdiff", "nvim", "nano", "pico", "emacs", "ed", "ex"}
} else := "name the commands of gdb in the text: `gdb -batch -ex run -ex bt ./program`" if {
	input.command.program == "gdb"
} else := "name the program to run"

# METADATA
# title: stdbuf is denied, since it preloads a library
# custom:
#   rule: launcher.preload
#   severity: high
#   category: loader
#   floor: true
#   match: ["stdbuf -oL go test ./... | head", "stdbuf -o0 make"]
#   not_match: ["grep --line-buffered x f", "python3 -u x.py"]
deny contains lib.denial(
	"launcher.preload",
	"stdbuf sets LD_PRELOAD, and no program may start with it",
	"remove it: all output is recorded; to see lines early, use the tool's own option, as in `grep --line-buffered x FILE`, `sed -u p FILE` or `python3 -u x.py`",
) if input.command.program == "stdbuf"

# METADATA
# title: Programs must not be started through the dynamic loader
# custom:
#   rule: loader.program
#   floor: true
#   severity: high
#   category: evasion
#   match: ["ldd build/app"]
#   not_match: ["readelf -d build/app", "objdump -p build/app", "ldd --version"]
deny contains lib.denial(
	"loader.program",
	sprintf("%s starts the loader, which can run any program", [input.command.program]),
	"read what the file needs: `readelf -d FILE` or `objdump -p FILE`",
) if {
	input.command.program == "ldd"
	not describes_itself
}
