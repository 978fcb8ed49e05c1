package fumehood.event

# A note is for people: it stands in the report beside what was seen and stops
# nothing. What may happen at all is for the sandbox and fumehood.exec to say.

# METADATA
# title: Somebody looks for a cloud's credentials
# custom:
#   rule: event.metadata
#   match: [{kind: connect, address: "tcp 169.254.169.254:80", errno: ENETUNREACH}, {kind: send, address: "udp [fd00:ec2::254]:80"}, {kind: connect, address: "tcp [::ffff:169.254.169.254]:80"}]
#   not_match: [{kind: connect, address: "tcp 192.0.2.1:80"}, {kind: listen, address: "tcp 169.254.169.254:80"}, {kind: write, path: /workspace/169.254.169.254}]
note contains {"rule": "event.metadata", "message": sprintf("%q tried to reach %q, where clouds hand out credentials", [input.name, input.host])} if {
	input.kind in {"connect", "send"}
	input.host in {"169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23"}
}

# METADATA
# title: Somebody looks for a container engine or for somebody's keys
# custom:
#   rule: event.control-socket
#   match: [{kind: connect, address: "unix /var/run/docker.sock", errno: ENOENT}, {kind: connect, address: "unix /run/user/1000/podman/podman.sock"}, {kind: connect, address: "unix /tmp/ssh-x/agent.7"}]
#   not_match: [{kind: connect, address: "unix /var/run/nscd/socket"}, {kind: connect, address: "unix /tmp/test.sock"}, {kind: listen, address: "unix /var/run/docker.sock"}]
note contains {"rule": "event.control-socket", "message": sprintf("%q tried to speak with %q, through which a host is controlled", [input.name, input.socket])} if {
	input.kind in {"connect", "send"}
	regex.match(`(^|/)((docker|containerd|crio|podman|libvirt-sock|dbus|system_bus_socket|S\.gpg-agent)(\.sock)?|agent\.[0-9]+)$`, input.socket)
}

# METADATA
# title: Somebody reaches for the kernel
# custom:
#   rule: event.kernel
#   match: [{kind: privilege, call: mount, errno: EPERM}, {kind: privilege, call: bpf}, {kind: privilege, call: setns}]
#   not_match: [{kind: privilege, call: io_uring_setup}, {kind: privilege, call: setresuid}, {kind: write, path: /workspace/mount}]
note contains {"rule": "event.kernel", "message": sprintf("%q called %q, which no test needs", [input.name, input.call])} if {
	input.kind == "privilege"
	input.call in {
		"mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsmount", "fspick", "setns", "init_module", "finit_module",
		"kexec_load", "bpf", "open_by_handle_at", "reboot", "swapon", "acct", "clock_settime", "settimeofday", "sethostname",
	}
}

# METADATA
# title: Somebody changes the system's files
# description: They lie in layers that cannot be written to; who tries is worth a look.
# custom:
#   rule: event.system-file
#   match: [{kind: write, path: /etc/passwd, errno: EROFS}, {kind: rename, path: /tmp/x, target: /usr/bin/git}, {kind: remove, path: /usr/bin/git}]
#   not_match: [{kind: write, path: /workspace/etc/passwd}, {kind: write, path: /tmp/usr/bin/git}, {kind: write, path: /etcetera}, {kind: connect, address: "unix /etc/x"}]
note contains {"rule": "event.system-file", "message": sprintf("%q tried to change %q, which belongs to the system", [input.name, place])} if {
	input.kind in {"write", "rename", "remove", "link", "mode"}
	some place in [input.path, input.target]
	regex.match(`^/(etc|usr|bin|sbin|lib|lib32|lib64|boot|root|opt|\.fumehood)(/|$)`, place)
}
