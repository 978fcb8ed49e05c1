package fumehood.event

import data.fumehood.lib

# A note is for people: it appears in the report next to the event and stops nothing. The
# sandbox and fumehood.exec decide what may happen.

# METADATA
# title: A program tried to reach a cloud metadata service
# custom:
#   rule: event.metadata
#   match: [
#     {kind: connect, address: "tcp 169.254.169.254:80", errno: ENETUNREACH}, {kind: send, address: "udp [fd00:ec2::254]:80"},
#     {kind: connect, address: "tcp [::ffff:169.254.169.254]:80"},
#     {kind: connection, flow: {egress: {kind: connect, address: 169.254.169.254, port: 80, protocol: tcp}, code: policy}},
#     {kind: datagram, flow: {egress: {kind: datagram, address: "fd00:ec2::254", port: 80, protocol: udp}}},
#     {kind: lookup, flow: {egress: {kind: lookup, name: metadata.google.internal, type: A}, code: policy}},
#     {kind: connection, program: "", flow: {egress: {kind: connect, address: "::ffff:169.254.169.254", port: 80}}}
#   ]
#   not_match: [
#     {kind: connect, address: "tcp 192.0.2.1:80"}, {kind: listen, address: "tcp 169.254.169.254:80"},
#     {kind: write, path: /workspace/169.254.169.254},
#     {kind: connection, flow: {egress: {kind: connect, name: api.example.com, address: 192.0.2.1, port: 443}}},
#     {kind: lookup, flow: {egress: {kind: lookup, name: metadata.example.com, type: A}}}
#   ]
note contains {
	"rule": "event.metadata",
	"message": sprintf("%s tried to reach %q, a cloud metadata service, which hands out credentials", [who, input.host]),
} if {
	input.kind in {"connect", "send", "connection", "datagram"}
	input.host in lib.metadata_addresses
}

note contains {
	"rule": "event.metadata",
	"message": sprintf("%s tried to reach %q, a cloud metadata service, which hands out credentials", [who, input.domain]),
} if {
	input.kind == "lookup"
	input.domain in lib.metadata_names
}

who := sprintf("%q", [input.name]) if input.name != ""

who := "a program" if input.name == ""

# METADATA
# title: A program may carry data out in names
# custom:
#   rule: event.tunnel
#   match: [
#     {kind: lookup, flow: {egress: {kind: lookup, name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.evil.example, type: TXT}, code: policy}},
#     {kind: lookup, flow: {egress: {kind: lookup, name: a0123456789.b0123456789.c0123456789.d0123456789.e0123456789.f0123456789.evil.example,
#     type: A}, code: policy}}
#   ]
#   not_match: [
#     {kind: lookup, flow: {egress: {kind: lookup, name: evil.example, type: A}, code: policy}},
#     {kind: lookup, flow: {egress: {kind: lookup, name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.api.example,
#     type: A}, decision: {effect: allow}}},
#     {kind: connection, flow: {egress: {kind: connect, name: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.evil.example}}}
#   ]
note contains {"rule": "event.tunnel", "message": sprintf("%s looked up %q, a name long enough to carry data", [who, input.domain])} if {
	input.kind == "lookup"
	input.refused == true
	regex.match(`[^.]{41}|^.{72}`, input.domain)
}

# METADATA
# title: A program tried to send what looks like a secret
# custom:
#   rule: event.secret
#   match: [
#     {kind: request, flow: {egress: {kind: request, name: api.example.com, method: POST, path: /},
#     decision: {reason: {rule: egress.secret, effect: deny}}, code: policy}}
#   ]
#   not_match: [
#     {kind: request, flow: {egress: {kind: request, name: api.example.com, method: POST, path: /},
#     decision: {reason: {rule: egress.host, effect: deny}}, code: policy}},
#     {kind: request, flow: {egress: {kind: request, name: api.example.com, method: GET, path: /}, decision: {effect: allow}}}
#   ]
note contains {"rule": "event.secret", "message": sprintf("%s tried to send what looks like a secret to %q", [who, input.domain])} if {
	input.kind == "request"
	input.rule == "egress.secret"
}

# METADATA
# title: A program tried to publish a package or log in
# custom:
#   rule: event.publish
#   match: [
#     {kind: request, flow: {egress: {kind: request, name: npm.example, method: PUT, path: /left-pad},
#     decision: {reason: {rule: egress.registry-method, effect: deny}}, code: policy}},
#     {kind: request, flow: {egress: {kind: request, name: npm.example, method: GET, path: /-/npm/v1/tokens},
#     decision: {reason: {rule: egress.publish, effect: deny}}, code: policy}}
#   ]
#   not_match: [
#     {kind: request, flow: {egress: {kind: request, name: npm.example, method: POST, path: /-/npm/v1/security/audits},
#     decision: {reason: {rule: egress.registry-method, effect: deny}}, code: policy}},
#     {kind: request, flow: {egress: {kind: request, name: npm.example, method: GET, path: /x}, decision: {effect: allow}}}
#   ]
note contains {"rule": "event.publish", "message": sprintf("%s tried to publish or log in: %s %q at %q", [who, input.method, input.route, input.domain])} if {
	input.kind == "request"
	input.rule == "egress.publish"
}

note contains {"rule": "event.publish", "message": sprintf("%s tried to publish or log in: %s %q at %q", [who, input.method, input.route, input.domain])} if {
	input.kind == "request"
	input.rule == "egress.registry-method"
	input.method in {"PUT", "DELETE", "PATCH"}
}

# METADATA
# title: A program tried to reach a container engine or a key agent
# custom:
#   rule: event.control-socket
#   match: [
#     {kind: connect, address: "unix /var/run/docker.sock", errno: ENOENT}, {kind: connect, address: "unix /run/user/1000/podman/podman.sock"},
#     {kind: connect, address: "unix /tmp/ssh-x/agent.7"},
#     {kind: connect, program: /workspace/docker-compose, address: "unix /var/run/docker.sock", errno: ENOENT}
#   ]
#   not_match: [
#     {kind: connect, program: /usr/libexec/docker/cli-plugins/docker-compose, address: "unix /var/run/docker.sock", errno: ENOENT},
#     {kind: connect, address: "unix /var/run/nscd/socket"}, {kind: connect, address: "unix /tmp/test.sock"},
#     {kind: listen, address: "unix /var/run/docker.sock"}
#   ]
note contains {"rule": "event.control-socket", "message": sprintf("%q tried to connect to %q, which can control the host", [input.name, input.socket])} if {
	input.kind in {"connect", "send"}
	regex.match(host_socket, input.socket)
	not looks_for_docker
}

# looks_for_docker: `docker compose config` asks whether there is a service, and does without.
looks_for_docker if {
	input.errno == "ENOENT"
	regex.match(`^/usr/(local/)?(bin|(lib|libexec)/docker/cli-plugins)/docker-compose$`, input.program)
}

host_socket := concat("", [
	`(^|/)((docker|containerd|crio|podman|libvirt-sock|dbus|system_bus_socket|S\.gpg-agent)(\.sock)?`,
	`|agent\.[0-9]+)$`,
])

# METADATA
# title: A program called the kernel as an administrator would
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
# title: A program tried to change the system's files
# description: They are in read-only layers; an attempt is worth a look.
# custom:
#   rule: event.system-file
#   match: [{kind: write, path: /etc/passwd, errno: EROFS}, {kind: rename, path: /tmp/x, target: /usr/bin/git}, {kind: remove, path: /usr/bin/git}]
#   not_match: [
#     {kind: write, path: /workspace/etc/passwd}, {kind: write, path: /tmp/usr/bin/git}, {kind: write, path: /etcetera},
#     {kind: connect, address: "unix /etc/x"}
#   ]
note contains {"rule": "event.system-file", "message": sprintf("%q tried to change %q, which belongs to the system", [input.name, place])} if {
	input.kind in {"write", "rename", "remove", "link", "mode"}
	some place in [input.path, input.target]
	regex.match(`^/(etc|usr|bin|sbin|lib|lib32|lib64|boot|root|opt|\.fumehood)(/|$)`, place)
}

# METADATA
# title: A tool tried to change .git or .github
# description: >-
#   In a command that may not run the repository's code, only git changes these directories, and the kernel refuses all
#   other changes.
# custom:
#   rule: event.control-place
#   match: [
#     {kind: write, path: /workspace/.git/hooks/pre-commit, errno: EACCES}, {kind: rename, path: /workspace/.github, errno: EACCES},
#     {kind: write, path: /home/user/.git/config, errno: EACCES}
#   ]
#   not_match: [{kind: write, path: /etc/x, errno: EACCES}, {kind: write, path: /workspace/.gitignore, errno: EACCES}, {kind: mode, path: /workspace/.git}]
note contains {"rule": "event.control-place", "message": sprintf("%q tried to change %q, which only git may change here", [input.name, input.path])} if {
	input.errno == "EACCES"
	regex.match(`^/(workspace|home/user)/\.git(hub)?(/.*)?$`, input.path)
}
