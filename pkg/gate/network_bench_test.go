// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Sizes of a measurement. The fastest of several answers counts, and a tenth percentile, because
// whatever else the machine does can only make them slower.
const (
	longAnswer     = 64 << 20
	longAnswers    = 8
	newConnections = 100
)

// Addresses: of the server outside, of the host on the way to it, and both ends of the
// direct way of a sandbox without a gateway.
const (
	serverAddr = "9.9.9.9"
	hostAddr   = "9.9.9.1"
	directAddr = "192.168.77.2"
	directHost = "192.168.77.1"
	proxyPort  = "3128"
)

// benchHosts grants the servers, and intercepts TLS to one of them.
const benchHosts = `package fumehood.proposal

network contains {"rule": "own.hosts", "host": h} if some h in input.proposal.network
`

const benchSeen = `package fumehood.egress

intercept contains {"rule": "own.seen"} if input.name == "seen.example"
`

// A way is one way from a sandbox to the server.
type way struct{ name, args string }

// plain are ways without a gateway, gated those through it.
var (
	plain = []way{
		{"direct", "https://pass.example"},
		{"proxy", "-proxy=" + directHost + ":" + proxyPort + " https://pass.example"},
	}
	gated = []way{
		{"passed", "https://pass.example"},
		{"seen", "https://seen.example"},
		{"seen-h2", "-h2 https://seen.example"},
		{"http", "http://pass.example"},
	}
)

// A cost is what was measured of one way.
type cost struct{ rate, connect, quick, processor float64 }

// BenchmarkNetwork measures, from inside a sandbox, what a new connection and a long answer
// cost through the gateway with everything on, beside a sandbox with a device of its own:
// directly (veth), and through a CONNECT proxy. All are TLS, except for http. Processor time
// is of all processes that take part. Budgets, of the proxy: 0.5 of its rate
// passed through, 0.35 intercepted, http not below TLS, and 8 ms more for a connection.
//
//	go test ./pkg/gate -run '^$' -bench Network -benchtime 3x
func BenchmarkNetwork(b *testing.B) {
	if os.Getenv("FUMEHOOD_BENCH_HOST") == "" {
		isolated(b)
		return
	}
	w := newOutside(b)
	costs := map[string][]cost{}
	add := func(name string, c cost) { costs[name] = append(costs[name], c) }
	for b.Loop() {
		w.plain(b, add)
		w.gated(b, add)
	}
	for _, way := range slices.Concat(plain, gated) {
		c := costs[way.name]
		b.ReportMetric(middle(c, func(c cost) float64 { return c.rate }), way.name+"-MiB/s")
		b.ReportMetric(middle(c, func(c cost) float64 { return c.connect }), way.name+"-ms")
		b.ReportMetric(middle(c, func(c cost) float64 { return c.quick }), way.name+"-p10-ms")
		b.ReportMetric(middle(c, func(c cost) float64 { return c.processor }), way.name+"-s/GiB")
	}
	b.ReportMetric(0, "ns/op")
}

func middle(c []cost, of func(cost) float64) float64 {
	var list []float64
	for _, c := range c {
		list = append(list, of(c))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// isolated runs the benchmark in a process in a network namespace of its own, which plays
// the host.
func isolated(b *testing.B) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), "FUMEHOOD_BENCH_HOST=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig depends on the thread
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	b.SkipNow() // the process has printed the figures
}

// An outsideWorld has the server, and the sandbox's workspace with the client.
type outsideWorld struct {
	workspace string
	roots     []byte
}

func newOutside(b *testing.B) *outsideWorld {
	b.Helper()
	w := &outsideWorld{workspace: b.TempDir()}
	installtest.Runsc(b)
	build := exec.Command("go", "build", "-o", filepath.Join(w.workspace, "reach"), "./testdata/reach")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	server, err := cables()
	if err != nil {
		b.Fatal(err)
	}
	if err := w.serve(server); err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"reach", "."} {
		if err := os.Chmod(filepath.Join(w.workspace, path), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	roots := filepath.Join(w.workspace, "roots.pem")
	if err := os.WriteFile(roots, w.roots, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Setenv("SSL_CERT_FILE", roots)
	return w
}

// cables connects the host to the server's namespace, which it returns.
func cables() (server int, err error) {
	server, err = netnstest.New()
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return 0, err
	}
	return server, errors.Join(device("lo", ""), cable("h0", hostAddr+"/24", server, serverAddr+"/24", hostAddr))
}

// direct returns the path of a namespace with a device of its own, which its sandbox takes
// over. It replaces the one before.
func direct() (string, error) {
	ns, err := netnstest.New()
	if err != nil {
		return "", err
	}
	if old, err := netlink.LinkByName("d0"); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return "", err
		}
	}
	// The kernel there must leave the frames to the sandbox.
	if err := netnstest.RunInNamespace(ns, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0) }); err != nil {
		return "", err
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns)
	return path, cable("d0", directHost+"/24", ns, directAddr+"/24", directHost)
}

// cable makes a pair of devices, here and in a namespace, whose default route is via.
func cable(name, here string, ns int, there, via string) error {
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(ns)}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	if err := device(name, here); err != nil {
		return err
	}
	return netnstest.RunInNamespace(ns, func() error {
		if err := errors.Join(device("lo", ""), device("eth0", there)); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(via)})
	})
}

func device(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if address != "" {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// serve starts the server outside, and on the host the name server and the proxy.
func (w *outsideWorld) serve(ns int) error {
	certificate, err := w.certificate("pass.example", "seen.example")
	if err != nil {
		return err
	}
	chunk := make([]byte, 256<<10)
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		left, _ := strconv.Atoi(r.URL.Path[1:])
		rw.Header().Set("Content-Length", strconv.Itoa(left))
		for left > 0 {
			n, err := rw.Write(chunk[:min(left, len(chunk))])
			if err != nil {
				return
			}
			left -= n
		}
	})}
	var tlsAt, at, proxyAt net.Listener
	err = netnstest.RunInNamespace(ns, func() (err error) {
		if tlsAt, err = net.Listen("tcp", ":443"); err == nil {
			at, err = net.Listen("tcp", ":80")
		}
		return err
	})
	if err != nil {
		return err
	}
	if proxyAt, err = net.Listen("tcp", ":"+proxyPort); err != nil {
		return err
	}
	names, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		return err
	}
	go server.ServeTLS(tlsAt, "", "")
	go server.Serve(at)
	go http.Serve(proxyAt, http.HandlerFunc(tunnel))
	go answerNames(names)
	return nil
}

// tunnel is a small CONNECT proxy; every name is the server's.
func tunnel(rw http.ResponseWriter, r *http.Request) {
	up, err := net.Dial("tcp", serverAddr+":443")
	if err != nil {
		return
	}
	defer up.Close()
	down, _, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer down.Close()
	io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		io.Copy(up, down)
		up.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(down, up)
}

// answerNames answers that every name has the server's address.
func answerNames(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
				Body: &dnsmessage.AResource{A: netip.MustParseAddr(serverAddr).As4()}}}
		}
		if answer, err := m.Pack(); err == nil {
			conn.WriteTo(answer, from)
		}
	}
}

func (w *outsideWorld) certificate(hosts ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outside"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	w.roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// plain measures the ways without a gateway. The kernel of the sandbox reports as always,
// but nothing is decided or logged.
func (w *outsideWorld) plain(b *testing.B, add func(string, cost)) {
	root, err := rootfs.Open("host", os.Getenv("PATH"))
	if err != nil {
		b.Fatal(err)
	}
	o, err := environment.SandboxOptions(w.workspace, root, installtest.Runsc(b))
	if err != nil {
		b.Fatal(err)
	}
	if o.Netns, err = direct(); err != nil {
		b.Fatal(err)
	}
	o.Limits = benchLimits
	o.Exec = func(proposal.Exec) proposal.ExecDecision { return proposal.ExecDecision{Effect: proposal.Allow} }
	o.Event = func(proposal.Event) {}
	o.Env["SSL_CERT_FILE"] = sandbox.Workspace + "/roots.pem"
	o.Files["/etc/hosts"] = []byte(serverAddr + " pass.example\n")
	r, err := sandbox.New(o)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for _, way := range plain {
		m := meter{b: b, way: way.name}
		for i, command := range way.commands() {
			m.begins()
			result, err := r.Run(b.Context(), sandbox.Execution{ID: fmt.Sprint(way.name, i), Text: command, Grant: proposal.Grant{Limits: benchLimits}})
			if err != nil {
				b.Fatal(err)
			}
			m.ends(result)
		}
		add(way.name, m.cost)
	}
}

var benchLimits = proposal.Limits{Wall: proposal.Duration(5 * time.Minute), CPUs: 2, Memory: 2 * proposal.GiB, Disk: proposal.GiB, Pids: 200, Files: 1024, Output: proposal.MiB}

// commands are two: the long answer, and new connections.
func (w way) commands() []string {
	return []string{fmt.Sprintf("./reach -size=%d -count=%d %s", longAnswer, longAnswers, w.args), fmt.Sprintf("./reach -count=%d %s", newConnections, w.args)}
}

// gated measures the ways through the gateway.
func (w *outsideWorld) gated(b *testing.B, add func(string, cost)) {
	p := proposal.Plan{}
	var rules strings.Builder
	for _, way := range gated {
		for i, command := range way.commands() {
			target := fmt.Sprint(way.name, i)
			fmt.Fprintf(&rules, "%s:\n\t@%s\n", target, command)
			p.Proposals = append(p.Proposals, proposal.Proposal{ID: target, Run: "make -s " + target, Network: []string{"pass.example", "seen.example"}})
		}
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "Makefile"), []byte(rules.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	m, done := meter{b: b}, 0
	g, err := gate.New(b.Context(), gate.Options{
		Workspace: w.workspace, Resolvers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")},
		Policies: []gate.Policy{{Name: "hosts", Role: "opens", Files: map[string][]byte{"hosts.rego": []byte(benchHosts), "seen.rego": []byte(benchSeen)}}},
		Progress: func(s gate.Step) {
			if m.way = s.Proposal; s.Result == nil {
				m.begins()
				return
			}
			m.ends(*s.Result)
			if done++; done%2 == 0 {
				add(gated[done/2-1].name, m.cost)
				m.cost = cost{}
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(b.Context(), p)
	if err != nil || done != len(p.Proposals) {
		b.Fatalf("%v, %d commands ran: %+v", err, done, report.Records[0].Decision)
	}
}

// A meter measures the commands of one way.
type meter struct {
	b    *testing.B
	way  string
	from float64
	cost cost
}

func (m *meter) begins() { m.from = treeTime(m.b) }

// ends takes what reach printed.
func (m *meter) ends(r proposal.Result) {
	var rate, connect, quick float64
	if n, _ := fmt.Sscan(string(r.Stdout.Head), &rate, &connect, &quick); n == 0 || !r.Succeeded() {
		m.b.Fatalf("%s: %s %s: %s%s", m.way, r.Status, r.Detail, r.Stdout.Head, r.Stderr.Head)
	}
	if rate == 0 {
		m.cost.connect, m.cost.quick = connect, quick
		return
	}
	m.cost.rate, m.cost.processor = rate, (treeTime(m.b)-m.from)*(1<<30)/(longAnswer*longAnswers)
}

// treeTime is the processor time in seconds of this process and its descendants: the
// sandbox, the gateway, the supervisor, the proxy and the server.
func treeTime(b *testing.B) (used float64) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	times, children := map[int]float64{}, map[int][]int{}
	for _, path := range paths {
		data, _ := os.ReadFile(path) // none of a process that ended meanwhile
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
		for _, field := range fields[11:15] { // user and system, of itself and of children that ended
			ticks, _ := strconv.ParseFloat(field, 64)
			times[pid] += ticks / 100
		}
	}
	for list := []int{os.Getpid()}; len(list) > 0; list = append(list[1:], children[list[0]]...) {
		used += times[list[0]]
	}
	return used
}
