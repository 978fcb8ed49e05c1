# METADATA
# title: Programs that are denied by name
package fumehood.lib

# refused names programs and the kind of reason for denying them. All of them are denied
# in the text of a command. When a program starts, only those of the kinds network,
# privilege and debugger are denied.
refused := {
	# They reach other machines and are useless without a network.
	"apt-get": "network", "aria2c": "network", "autossh": "network", "aws": "network", "az": "network", "azcopy": "network", "chisel": "network",
	"cloudflared": "network", "curl": "network",
	"curlie": "network", "dbclient": "network", "delv": "network", "dig": "network", "drill": "network", "frpc": "network", "ftp": "network",
	"ftpget": "network", "ftpput": "network", "gcloud": "network",
	"gh": "network", "git-http-fetch": "network", "git-http-push": "network", "git-imap-send": "network", "git-remote-ftp": "network",
	"git-remote-ftps": "network",
	"git-remote-http": "network", "git-remote-https": "network", "glab": "network", "grpcurl": "network", "gsutil": "network", "hping3": "network",
	"httpie": "network",
	"iodine": "network", "kdig": "network", "lftp": "network", "lynx": "network", "mosh": "network", "nc": "network", "ncat": "network", "netcat": "network",
	"ngrok": "network", "nmap": "network", "nslookup": "network", "pftp": "network", "ping": "network", "ping6": "network", "plink": "network",
	"proxychains": "network",
	"proxychains4": "network", "pscp": "network", "psftp": "network", "rclone": "network", "rsync": "network", "s3cmd": "network", "scp": "network",
	"sftp": "network",
	"slogin": "network", "socat": "network", "socat1": "network", "ssh": "network", "ssl_client": "network", "tcpdump": "network",
	"tcptraceroute": "network", "telnet": "network",
	"telnet-ssl": "network", "tftp": "network", "tnftp": "network", "tor": "network", "torsocks": "network", "tracepath": "network", "traceroute": "network",
	"w3m": "network", "websocat": "network", "wget": "network", "wget2": "network", "whois": "network", "xh": "network", "xhs": "network",
	# They do too, but test suites start and query their own databases, and Python's
	# uuid asks ip and ifconfig for an address.
	"host": "local", "http": "local", "https": "local", "hub": "local", "ifconfig": "local", "ip": "local", "links": "local", "mail": "local", "mongosh": "local",
	"mysql": "local", "psql": "local", "redis-cli": "local", "sendmail": "local", "twine": "local",
	# They change privileges, enter other namespaces, run containers and services, or
	# install system-wide.
	"apk": "privilege", "apt": "privilege", "atd": "privilege", "brew": "privilege", "buildah": "privilege", "bwrap": "privilege",
	"capsh": "privilege", "chfn": "privilege", "chroot": "privilege", "chsh": "privilege", "crictl": "privilege", "crontab": "privilege", "crun": "privilege",
	"cryptsetup": "privilege", "ctr": "privilege", "dmsetup": "privilege", "dnf": "privilege", "doas": "privilege", "docker": "privilege",
	"docker-compose": "privilege",
	"docker.io": "privilege", "emerge": "privilege", "fakechroot": "privilege", "firejail": "privilege", "fusermount": "privilege", "fusermount3": "privilege",
	"gosu": "privilege", "groupadd": "privilege", "halt": "privilege", "insmod": "privilege", "iptables": "privilege", "k3s": "privilege",
	"kata-runtime": "privilege",
	"kexec": "privilege", "kubectl": "privilege", "losetup": "privilege", "lxc": "privilege", "lxc-attach": "privilege", "lxc-start": "privilege",
	"machinectl": "privilege", "minijail0": "privilege", "minikube": "privilege", "mkfs": "privilege", "modprobe": "privilege", "mount": "privilege",
	"nerdctl": "privilege", "newgidmap": "privilege", "newgrp": "privilege", "newuidmap": "privilege", "nft": "privilege", "nix-env": "privilege",
	"nsenter": "privilege",
	"nsjail": "privilege", "pacman": "privilege", "passwd": "privilege", "pasta": "privilege", "pivot_root": "privilege", "pkexec": "privilege",
	"podman": "privilege",
	"poweroff": "privilege", "proot": "privilege", "reboot": "privilege", "rmmod": "privilege", "rootlesskit": "privilege", "runc": "privilege",
	"runsc": "privilege",
	"runuser": "privilege", "setcap": "privilege", "setpriv": "privilege", "sg": "privilege", "shutdown": "privilege", "skopeo": "privilege",
	"slirp4netns": "privilege",
	"snap": "privilege", "start-stop-daemon": "privilege", "su": "privilege", "sulogin": "privilege", "setuidgid": "privilege", "chpst": "privilege",
	"su-exec": "privilege", "sudo": "privilege", "swapoff": "privilege", "swapon": "privilege",
	"switch_root": "privilege", "systemctl": "privilege", "systemd-nspawn": "privilege", "systemd-run": "privilege", "umoci": "privilege", "umount": "privilege",
	"unshare": "privilege", "useradd": "privilege", "usermod": "privilege", "vigr": "privilege", "vipw": "privilege", "visudo": "privilege", "youki": "privilege",
	"yum": "privilege", "zypper": "privilege",
	# They do so only with privileges that the sandbox lacks. Builds start them in
	# passing, without effect: ctypes starts ldconfig, and configure scripts start dd
	# and chown.
	"at": "administering", "batch": "administering", "chgrp": "administering", "chown": "administering", "dd": "administering", "dmesg": "administering",
	"dpkg": "administering", "init": "administering", "ldconfig": "administering", "mknod": "administering", "service": "administering",
	"setfacl": "administering",
	"sysctl": "administering", "update-alternatives": "administering",
	# They take over other processes, whose names would no longer be meaningful.
	"bpftool": "debugger", "bpftrace": "debugger", "eu-stack": "debugger", "gcore": "debugger", "gdb": "debugger", "gdbserver": "debugger", "gdbtui": "debugger",
	"lldb": "debugger", "lldb-server": "debugger", "ltrace": "debugger", "perf": "debugger", "pstack": "debugger", "rr": "debugger", "scanmem": "debugger",
	"strace": "debugger", "uftrace": "debugger",
	# They run other programs and hide from readers of the text which. When a program
	# starts, each program that they start is decided separately.
	".": "launcher", "aa-exec": "launcher", "agetty": "launcher", "alias": "launcher", "ansible": "launcher", "ansible-playbook": "launcher", "bind": "launcher",
	"busybox": "launcher", "choom": "launcher", "compgen": "launcher", "complete": "launcher", "cpio": "launcher", "cpulimit": "launcher", "csh": "launcher",
	"dbus-send": "launcher", "ed": "launcher", "elvish": "launcher", "emacs": "launcher", "enable": "launcher", "entr": "launcher", "eval": "launcher",
	"ex": "launcher",
	"expect": "launcher", "facter": "launcher", "fc": "launcher", "fish": "launcher", "flock": "launcher", "genie": "launcher", "ghci": "launcher",
	"gimp": "launcher",
	"gnuplot": "launcher", "groff": "launcher", "history": "launcher", "iex": "launcher", "ipython": "launcher", "irb": "launcher", "jjs": "launcher",
	"jrunscript": "launcher", "ksh": "launcher", "latex": "launcher", "launchctl": "launcher", "ld-linux-x86-64.so.2": "launcher", "ld-linux.so.2": "launcher",
	"ld.so": "launcher", "less": "launcher", "linux32": "launcher", "linux64": "launcher", "logsave": "launcher", "lualatex": "launcher", "man": "launcher",
	"more": "launcher", "most": "launcher", "msgfilter": "launcher", "nano": "launcher", "nodemon": "launcher", "nroff": "launcher", "nu": "launcher",
	"nvim": "launcher",
	"octave": "launcher", "osascript": "launcher", "packer": "launcher", "parallel": "launcher", "pbcopy": "launcher", "pdflatex": "launcher", "pg": "launcher",
	"pic": "launcher", "pry": "launcher", "puppet": "launcher", "pwsh": "launcher", "rev-shell": "launcher", "rlwrap": "launcher", "rpm": "launcher",
	"run-parts": "launcher", "scapy": "launcher", "screen": "launcher", "script": "launcher", "setarch": "launcher", "source": "launcher", "ssh-add": "launcher",
	"ssh-agent": "launcher", "ssh-keygen": "launcher", "sshpass": "launcher", "tcsh": "launcher", "tex": "launcher", "tmux": "launcher", "toybox": "launcher",
	"troff": "launcher", "tshark": "launcher", "unbuffer": "launcher", "vagrant": "launcher", "vi": "launcher", "view": "launcher", "vim": "launcher",
	"watch": "launcher",
	"wireshark": "launcher", "wish": "launcher", "xclip": "launcher", "xdotool": "launcher", "xelatex": "launcher", "xterm": "launcher", "zip2": "launcher",
	"zsh": "launcher",
}

# loader is true for the file names of the dynamic loader and of libraries. Started as
# programs, they can run any other program.
loader(name) if {
	contains(name, ".so")
	regex.match(`\.so(\.[0-9]+)*$`, name)
}

loader(name) if startswith(name, "ld-linux")

loader(name) if startswith(name, "ld-musl")
