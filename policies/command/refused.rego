package fumehood.command

import data.fumehood.lib

network := {
	"curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "scp", "sftp", "rsync", "telnet", "ftp", "tftp", "lftp", "dig", "nslookup", "host", "ping", "ping6", "traceroute", "tracepath", "nmap", "whois",
	"aria2c", "http", "https", "httpie", "xh", "lynx", "w3m", "links", "gh", "glab", "hub", "aws", "gcloud", "az", "mail", "sendmail", "tcpdump", "ip", "ifconfig", "mosh", "rclone", "psql", "mysql", "redis-cli", "mongosh", "twine", "ngrok", "cloudflared",
}

# METADATA
# title: No network in this version
# custom:
#   rule: network.client
#   match: ["curl -s https://x.example | jq .", "nc -l 1", "rsync a b:c", "/usr/bin/wget x"]
#   not_match: ["grep curl README.md"]
deny contains lib.denial("network.client", sprintf("%s needs the network, and there is no network in this version", [input.command.program]), "use what the repository and the machine already hold") if input.command.program in network

privilege := {
	"sudo", "su", "doas", "pkexec", "runuser", "setpriv", "capsh", "chroot", "unshare", "nsenter", "mount", "umount", "docker", "podman", "buildah", "nerdctl", "kubectl", "ctr", "crictl", "runc", "runsc", "lxc", "systemctl", "service", "systemd-run", "insmod", "modprobe", "sysctl", "dmesg",
	"iptables", "nft", "chown", "chgrp", "setcap", "passwd", "useradd", "usermod", "visudo", "crontab", "at", "batch", "atd", "newgrp", "sg", "losetup", "mknod", "reboot", "shutdown", "init", "mkfs", "dd", "bwrap", "firejail", "setfacl", "ldconfig", "update-alternatives", "apt", "apt-get", "dpkg", "apk", "yum", "dnf", "snap", "brew",
}

# METADATA
# title: No privilege, no other namespace, no service
# custom:
#   rule: privilege.none
#   match: ["sudo ls", "docker run x", "unshare -r id", "apt-get install x"]
deny contains lib.denial("privilege.none", sprintf("%s asks for privilege, services or another namespace", [input.command.program]), "run the tool itself: the sandbox has neither root nor services") if input.command.program in privilege

launchers := {
	"busybox", "toybox", "script", "expect", "parallel", "strace", "ltrace", "gdb", "lldb", "screen", "tmux", "watch", "flock", "start-stop-daemon", "run-parts", "vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more", "man", "most", "pg", "rlwrap", "entr", "nodemon", "perf", "ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "zsh", "fish", "ksh", "csh", "tcsh", "pwsh", "cpulimit", "dbus-send", "gimp", "logsave", "facter", "puppet", "ansible", "ansible-playbook", "cpio", "rpm", "rev-shell", "vagrant", "packer", "eval", "source", ".", "alias", "enable", "bind", "complete", "compgen", "fc", "history", "aa-exec", "agetty", "choom", "dmsetup", "scanmem", "setarch", "linux64", "linux32", "sshpass", "ssh-agent", "ssh-keygen", "ssh-add", "unbuffer", "xdotool", "xterm", "wish", "zip2", "ghci", "irb", "iex", "pry", "jjs", "jrunscript", "scapy", "ipython", "msgfilter", "pic", "groff", "troff", "nroff", "tex", "latex", "pdflatex", "lualatex", "xelatex", "wireshark", "tshark", "octave", "gnuplot", "genie", "elvish", "nu", "osascript", "launchctl", "xclip", "pbcopy",
}

# METADATA
# title: Programs that run other programs and hide which
# custom:
#   rule: launcher.hidden
#   match: ["busybox sh", "parallel ls ::: a", "vim -c :q", "script -c id"]
deny contains lib.denial("launcher.hidden", sprintf("%s runs other programs in ways that the text does not show", [input.command.program]), "name the program that is to run") if input.command.program in launchers
