// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/roottest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestMain also runs the gateway's process and processes that pretend to be one. The tests
// run in their own network namespace, which plays "the host".
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == DoorName:
		os.Exit(Main(os.Stderr))
	case len(os.Args) == 3 && os.Args[1] == "rogue":
		rogues[os.Args[2]]()
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == "supervisor":
		supervise()
	case os.Getenv("EGRESS_TEST_HOST") == "":
		roottest.Check()
		os.Exit(inNamespace())
	}
	os.Exit(m.Run())
}

func inNamespace() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), "EGRESS_TEST_HOST=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig depends on the thread
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Addresses of the world outside. They are public addresses, in an isolated namespace.
const (
	allowedAddr  = "9.9.9.9"
	allowedAddr6 = "2620:fe::9"
	evilAddr     = "9.9.9.10"
	nobodyAddr   = "9.9.9.77"
	dnsAddr      = "9.9.9.53"
	hostAddr     = "9.9.9.1"
	privateAddr  = "10.9.9.9"
	metadataAddr = "169.254.169.254"
)

// A world is the network outside: servers, and canaries that must never be contacted.
type world struct {
	ns      int
	pool    *x509.CertPool
	roots   string // the same as PEM
	cert    tls.Certificate
	touched sync.Map
	lied    atomic.Int64 // how often the resolver was queried for rebind.example
}

var theWorld = sync.OnceValues(makeWorld)

func outside(t testing.TB) *world {
	t.Helper()
	w, err := theWorld()
	if err != nil {
		t.Fatal(err)
	}
	w.touched.Clear()
	return w
}

func makeWorld() (*world, error) {
	w := &world{}
	var err error
	if w.ns, err = netnstest.New(); err != nil {
		return nil, err
	}
	if err := w.cable(); err != nil {
		return nil, err
	}
	cert, err := w.certificate("allowed.example", "www.allowed.example", "fat.example", "evil.example")
	if err != nil {
		return nil, err
	}
	w.cert = cert
	return w, w.serveAll(cert)
}

// cable connects the host to the world outside.
func (w *world) cable() error {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "h0", MTU: 65521}, PeerName: "o0", PeerNamespace: netlink.NsFd(w.ns), PeerMTU: 65521}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	if err := device("lo"); err != nil {
		return err
	}
	if err := device("h0", hostAddr+"/24", "2620:fe::1/64"); err != nil {
		return err
	}
	for _, to := range []string{"10.0.0.0/8", "169.254.0.0/16"} {
		if err := route(to, allowedAddr); err != nil {
			return err
		}
	}
	// A host needs three seconds to find that an address is unused; here it finds out at
	// once.
	if err := netlink.RouteAdd(&netlink.Route{Dst: netlink.NewIPNet(net.ParseIP(nobodyAddr)), Type: unix.RTN_UNREACHABLE}); err != nil {
		return err
	}
	return netnstest.RunInNamespace(w.ns, func() error {
		if err := device("lo", privateAddr+"/32", metadataAddr+"/32"); err != nil {
			return err
		}
		return device("o0", allowedAddr+"/24", evilAddr+"/24", dnsAddr+"/24", allowedAddr6+"/64")
	})
}

func device(name string, addrs ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		if addr.IP.To4() == nil {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return netlink.LinkSetUp(link)
}

func route(to, via string) error {
	_, dst, err := net.ParseCIDR(to)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: net.ParseIP(via)})
}

// certificate makes a self-signed certificate.
func (w *world) certificate(hosts ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "world"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	w.roots = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	w.pool = x509.NewCertPool()
	w.pool.AppendCertsFromPEM([]byte(w.roots))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// listen listens outside, or in namespace ns.
func listen(ns int, addr string) (l net.Listener, err error) {
	err = netnstest.RunInNamespace(ns, func() error {
		l, err = net.Listen("tcp", addr)
		return err
	})
	return l, err
}

func (w *world) serveAll(cert tls.Certificate) error {
	host, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		ns   int
		addr string
		tls  bool
	}{{w.ns, "[::]:443", true}, {w.ns, "[::]:80", false}, {w.ns, "[::]:22", false}, {host, hostAddr + ":443", true}, {host, "127.0.0.1:443", true}} {
		l, err := listen(s.ns, s.addr)
		if err != nil {
			return fmt.Errorf("%s: %w", s.addr, err)
		}
		if l = (touching{l, w}); s.tls {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
		}
		server := &http.Server{Handler: http.HandlerFunc(w.page), ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = server.Serve(l) }()
	}
	if err := w.serveStreams(); err != nil {
		return err
	}
	return w.serveDNS()
}

// A touching listener records the addresses that were connected to.
type touching struct {
	net.Listener
	w *world
}

func (l touching) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		at, _ := netip.ParseAddrPort(conn.LocalAddr().String())
		l.w.touched.Store(netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String(), true)
	}
	return conn, err
}

// connections lists the addresses that were connected to.
func (w *world) connections() []string {
	list := []string{}
	w.touched.Range(func(k, _ any) bool { list = append(list, k.(string)); return true })
	slices.Sort(list)
	return list
}

// page returns the host and path of the request; with n it is padded to n bytes.
func (w *world) page(rw http.ResponseWriter, r *http.Request) {
	if n, err := strconv.Atoi(r.URL.Query().Get("n")); err == nil {
		_, _ = io.CopyN(rw, zeros{}, int64(n))
		return
	}
	if r.URL.Path == "/hang" {
		<-r.Context().Done()
	}
	sni := ""
	if r.TLS != nil {
		sni = r.TLS.ServerName
	}
	fmt.Fprintf(rw, "%s %s %s sni=%s", r.Method, r.Host, r.URL.Path, sni)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// addresses returns the answers of the world's resolver.
func (w *world) addresses(name string) []string {
	switch name {
	case "allowed.example.", "www.allowed.example.", "fat.example.":
		return []string{allowedAddr}
	case "evil.example.":
		return []string{evilAddr}
	case "host.example.":
		return []string{hostAddr}
	case "local.example.":
		return []string{"127.0.0.1"}
	case "metadata.example.":
		return []string{metadataAddr}
	case "private.example.":
		return []string{privateAddr}
	case "mixed.example.":
		return []string{allowedAddr, privateAddr}
	case "fallback.example.":
		return []string{nobodyAddr, evilAddr}
	case "rebind.example.":
		if w.lied.Add(1) == 1 {
			return []string{allowedAddr}
		}
		return []string{metadataAddr}
	}
	return nil
}

func (w *world) serveDNS() error {
	var conn net.PacketConn
	err := netnstest.RunInNamespace(w.ns, func() (err error) {
		conn, err = net.ListenPacket("udp4", dnsAddr+":53")
		return err
	})
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := w.answer(buf[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return nil
}

func (w *world) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	addrs := w.addresses(strings.ToLower(q.Name.String()))
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if addrs == nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	ttl := uint32(60)
	if strings.HasPrefix(q.Name.String(), "rebind.") {
		ttl = 0
	}
	for _, a := range addrs {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: ttl},
				Body: &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()}})
		}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// A record keeps what a gateway reported.
type record struct {
	mu     sync.Mutex
	events []proposal.Event
	failed chan error
}

func (r *record) event(e proposal.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// wait waits until n events were reported, or for a limited time.
func (r *record) wait(n int) {
	for end := time.Now().Add(time.Minute); len(r.lines()) < n && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

// lines are the events in short, in order.
func (r *record) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, e := range r.events {
		f, g := e.Flow, e.Flow.Egress
		line := fmt.Sprintf("%s %s %s:%d %s", e.Kind, g.Name, g.Address, g.Port, f.Decision.Effect)
		if g.SNI != "" {
			line += " sni=" + g.SNI
		}
		if g.Method != "" {
			line += fmt.Sprintf(" %s %s %d", g.Method, g.Path, f.Status)
		}
		if f.Code != "" {
			line += " (" + f.Code + ")"
		}
		list = append(list, line)
	}
	return list
}

// house is a policy for tests that decides by name.
func house(_ context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
	no := proposal.EgressDecision{Rules: []string{"test.no"}}
	yes := proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"test.yes"}}
	switch {
	case e.Command == "" || e.Phase == "" || e.Grants == nil || e.Registries == nil:
		return no, errors.New("a question without a command")
	case e.Kind == points.EgressDatagram, e.Name == "":
		return no, nil
	case !slices.Contains(e.Grants, e.Name):
		return no, nil
	case e.Kind == points.EgressLookup && e.Type != "A" && e.Type != "AAAA":
		return no, nil
	case e.Kind == points.EgressConnect && e.Port == 7:
		yes.Raw = true
	case e.Kind == points.EgressConnect && e.Port != 443 && e.Port != 80:
		return no, nil
	case e.Kind == points.EgressRequest && e.Method != "GET":
		return no, nil
	}
	yes.Intercept = strings.HasPrefix(e.Name, "www.")
	return yes, nil
}

// everyone lists the names granted to the tests' command.
var everyone = []string{"allowed.example", "www.allowed.example", "host.example", "local.example", "metadata.example",
	"private.example", "mixed.example", "rebind.example", "fat.example", "gone.example", "fallback.example"}

func optionsFor(w *world, r *record) Options {
	return Options{
		Decide: house, AnswerWithin: time.Minute, Event: r.event, Events: 10000,
		Fail:      func(err error) { r.failed <- err },
		Resolvers: []netip.AddrPort{netip.MustParseAddrPort(dnsAddr + ":53")}, Roots: w.roots,
	}
}

// open starts a gateway with a command that was granted everyone.
func open(t testing.TB, change func(*Options)) (*world, *Gateway, *record) {
	t.Helper()
	w, r := outside(t), &record{failed: make(chan error, 1)}
	o := optionsFor(w, r)
	if change != nil {
		change(&o)
	}
	g, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	if err := g.Begin(t.Context(), "c1", granted); err != nil {
		t.Fatal(err)
	}
	return w, g, r
}

// granted is what each command of these tests is granted.
var granted = proposal.Grant{Network: everyone, Phase: proposal.PhaseRun}

// dial connects from inside the sandbox, with the kernel's stack there. It looks up names as
// a program would.
func (g *Gateway) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		found, err := g.lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		host = found[0]
	}
	return g.dialAddr(ctx, network, net.JoinHostPort(host, port))
}

func (g *Gateway) dialAddr(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	err = netnstest.RunInNamespace(g.inside(), func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// insides are the namespaces of gateways, kept for the whole test run: a resolver's last
// retries arrive long after its gateway has closed.
var insides sync.Map

func (g *Gateway) inside() int {
	if fd, ok := insides.Load(g); ok {
		return fd.(int)
	}
	fd, err := unix.FcntlInt(g.ns.File.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	insides.Store(g, fd)
	return fd
}

func (g *Gateway) lookup(ctx context.Context, name string) ([]string, error) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return g.dialAddr(ctx, network, netip.AddrPortFrom(g.ns.Segment.Gateway.V4, 53).String())
	}}
	found, err := resolver.LookupNetIP(ctx, "ip4", name+".")
	var list []string
	for _, a := range found {
		list = append(list, a.Unmap().String())
	}
	return list, err
}

// client is the HTTP client of a program in the sandbox.
func (g *Gateway) client(roots *x509.CertPool, sni string) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: g.dial, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: sni}, DisableKeepAlives: true,
	}}
}

func get(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}
