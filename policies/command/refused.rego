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
	not asks_version_only
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

# METADATA
# title: Every tool may print its version
# description: >-
#   A program that policy does not know, and a client of a database, may be started with --version or --help alone. It
#   starts nothing (exec.child), and has no network.
# custom:
#   rule: tool.version
#   match: [
#     "psql --version", "mysql --help", "redis-cli --version | head -1", "unheard-of --version"
#   ]
#   not_match: [
#     "psql --version x", "psql $x", "psql -h x.example --version", "docker --version", "busybox --version", "nc --version", "mail --version",
#     "unheard-of --version x", "unheard-of version", "unheard-of --version=x", "/opt/x/unheard-of --version", "a.b --version"
#   ]
allow contains {"rule": "tool.version"} if {
	input.command.place in found
	asks_version_only
}

asks_version_only if {
	describes_itself
	input.command.program in {"psql", "mysql", "mongosh", "redis-cli"}
}

asks_version_only if {
	describes_itself
	not input.command.program in lib.programs
	not lib.refused[input.command.program]
	regex.match(`^[a-z][\w-]*$`, input.command.program)
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
) if {
	lib.refused[input.command.program] == "administering"
	not making_file
}

administering_instead := "make a file of a size: `head -c 1024 /dev/zero > out.bin`; copy one: `cp a.bin b.bin`" if {
	input.command.program == "dd"
} else := "remove it: the sandbox has no root user and no services"

# dd makes a file of a size from zeros, or copies one to /tmp. A name without a dot or a slash may be a key's: id_rsa.
making_file if {
	input.command.program == "dd"
	input.command.static
	some word in input.command.argv
	startswith(word, "of=")
	every w in input.command.argv { regex.match(dd_word, w) }
}

dd_word := concat("", [
	`^((bs|ibs|obs|count|skip|seek)=\d+[a-zA-Z]{0,3}|(conv|status|iflag|oflag)=[a-z_,]+`,
	`|if=(/dev/(zero|urandom)|(/tmp/|\./)\w[\w-]*([./][\w-]+)*|\w[\w-]*([./][\w-]+)+)`,
	`|of=(/dev/null|/tmp/\w[\w-]*([./][\w-]+)*))$`,
])

# METADATA
# title: dd makes and copies files below /tmp
# custom:
#   rule: files.dd
#   match: ["dd if=/dev/zero of=/tmp/big bs=1M count=16 status=none", "dd if=testdata/a.bin of=/tmp/b bs=1 skip=4"]
#   not_match: [
#     "dd if=/dev/zero of=big", "dd if=/dev/sda of=/tmp/x", "dd of=/etc/motd if=/dev/zero", "dd if=/tmp/x of=/tmp/../etc/x", "dd if=/dev/zero of=$x",
#     "dd if=/etc/passwd of=/tmp/x", "dd of=/tmp/.npmrc if=/dev/zero", "dd if=.git/config of=/tmp/x", "dd if=../x of=/tmp/x",
#     "dd if=id_rsa of=/tmp/x"
#   ]
allow contains {"rule": "files.dd"} if {
	input.command.place in found
	making_file
}

# ansible-playbook reads playbooks. Plugins that it loads run as those of ansible-lint do, and it starts nothing.
checking_playbooks if {
	input.command.program == "ansible-playbook"
	input.command.static
	some word in input.command.argv
	word in {"--syntax-check", "--list-tasks", "--list-hosts"}
	every w in input.command.argv { regex.match(playbook_word, w) }
}

playbook_word := `^(--(syntax-check|list-tasks|list-hosts|list-tags)|-i|--inventory|-v+|\w[\w-]*([./][\w-]+)*)$`

# METADATA
# title: Playbooks may be checked
# custom:
#   rule: code.playbook
#   match: ["ansible-playbook --syntax-check site.yml", "ansible-playbook -i inventories/ci --list-tasks playbooks/site.yml"]
#   not_match: [
#     "ansible-playbook site.yml", "ansible-playbook --syntax-check site.yml --vault-password-file ./x",
#     "ansible-playbook --syntax-check -e @x s.yml",
#     "ansible-playbook --syntax-check /tmp/../x.yml", "ansible-playbook --syntax-check -M ./x site.yml", "ansible all -m shell"
#   ]
allow contains {"rule": "code.playbook"} if {
	input.command.place in found
	checking_playbooks
}

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
	not checking_playbooks
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
