// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
)

// An internet is two connected network namespaces. fumehood runs in one of them, as
// on a separate host. In the other are servers with addresses that look public,
// private, like another host's and like a cloud's metadata service. It has no
// connection to the machine's network.
type internet struct {
	t     testing.TB
	host  *os.File // namespace of fumehood's host
	world *os.File
	roots string // file with the CA certificate of the servers
	ca    *authority

	mu      sync.Mutex
	names   map[string][]netip.Addr
	touched map[string]int // canary → number of connections
	served  []string       // "GET https://name/path"
	queries []string       // received by the world's name server
}

// The addresses and ports.
const (
	hostAddress   = "45.33.32.1"
	routerAddress = "45.33.32.2"
	serverAddress = "93.184.215.14"
	otherAddress  = "93.184.215.15"
	foreignDNS    = "9.9.9.9"
	sshAddress    = "93.184.215.16"
	mirrorAddress = "10.20.0.7" // private, like a company's mirror
)

var worldAddresses = []string{
	routerAddress + "/24", serverAddress + "/32", otherAddress + "/32", foreignDNS + "/32", sshAddress + "/32", mirrorAddress + "/32",
	"169.254.169.254/32", "10.0.0.5/32", "192.168.7.7/32", "100.64.0.9/32", "2606:2800:220:1::14/128", "fd00:ec2::254/128", "64:ff9b::a00:5/128",
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	n := &internet{t: t, names: map[string][]netip.Addr{}, touched: map[string]int{}}
	n.host, n.world = namespace(t), namespace(t)
	n.cable()
	n.ca = newAuthority(t)
	n.roots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(n.roots, n.ca.pem, 0o644); err != nil {
		t.Fatal(err)
	}
	n.nameServer(routerAddress)
	n.canaries()
	return n
}

// namespace makes a network namespace that exists until the end of the test.
func namespace(t testing.TB) *os.File {
	t.Helper()
	fd, err := netnstest.New()
	if err != nil {
		t.Fatalf("cannot make a network namespace: %v", err)
	}
	f := os.NewFile(uintptr(fd), "namespace")
	t.Cleanup(func() { f.Close() })
	return f
}

// in runs f in a namespace: the sockets and processes that it makes stay there.
func (n *internet) in(ns *os.File, f func() error) {
	n.t.Helper()
	if err := netnstest.RunInNamespace(int(ns.Fd()), f); err != nil {
		n.t.Fatal(err)
	}
}

func (n *internet) cable() {
	n.in(n.host, func() error {
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out0", MTU: 65000}, PeerName: "in0", PeerNamespace: netlink.NsFd(int(n.world.Fd()))}
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		if err := up("out0", hostAddress+"/24", "2606:2800:220:2::1/64"); err != nil {
			return err
		}
		out, err := netlink.LinkByName("out0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: out.Attrs().Index, Gw: net.ParseIP(routerAddress)})
	})
	n.in(n.world, func() error { return up("in0", append(worldAddresses, "2606:2800:220:2::2/64")...) })
	n.in(n.host, func() error {
		out, err := netlink.LinkByName("out0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: out.Attrs().Index, Gw: net.ParseIP("2606:2800:220:2::2")})
	})
}

func up(name string, addresses ...string) error {
	for _, device := range []string{"lo", name} {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		if device == "lo" {
			continue
		}
		for _, text := range addresses {
			a, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			a.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(link, a); err != nil {
				return fmt.Errorf("cannot give %s to %s: %w", text, name, err)
			}
		}
	}
	return nil
}

// listen listens in a namespace.
func (n *internet) listen(ns *os.File, network, address string) (l net.Listener) {
	n.t.Helper()
	n.in(ns, func() (err error) {
		l, err = net.Listen(network, address)
		return err
	})
	n.t.Cleanup(func() { l.Close() })
	return l
}

func (n *internet) listenPacket(ns *os.File, network, address string) (c net.PacketConn) {
	n.t.Helper()
	n.in(ns, func() (err error) {
		c, err = net.ListenPacket(network, address)
		return err
	})
	n.t.Cleanup(func() { c.Close() })
	return c
}

// canaries listens wherever no traffic may ever arrive.
func (n *internet) canaries() {
	for name, at := range map[string]struct {
		ns      *os.File
		address string
	}{
		"metadata": {n.world, "169.254.169.254:80"}, "private 10": {n.world, "10.0.0.5:443"}, "private 192.168": {n.world, "192.168.7.7:80"},
		"shared": {n.world, "100.64.0.9:80"}, "metadata v6": {n.world, "[fd00:ec2::254]:80"}, "embedded v4": {n.world, "[64:ff9b::a00:5]:443"},
		"loopback of the host": {n.host, "127.0.0.1:80"}, "loopback of the host v6": {n.host, "[::1]:80"}, "the host": {n.host, hostAddress + ":443"},
		"ssh": {n.world, serverAddress + ":22"}, "other port": {n.world, serverAddress + ":8443"}, "other server": {n.world, otherAddress + ":443"}, "other server plain": {n.world, otherAddress + ":80"},
		"dns over tls": {n.world, foreignDNS + ":853"}, "dns over tcp": {n.world, foreignDNS + ":53"}, "proxy": {n.world, otherAddress + ":3128"},
	} {
		l := n.listen(at.ns, "tcp", at.address)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				n.touch(name + " tcp")
				c.Close()
			}
		}()
	}
	for name, at := range map[string]string{"dns": foreignDNS + ":53", "quic": serverAddress + ":443", "quic other": otherAddress + ":443", "ntp": otherAddress + ":123"} {
		c := n.listenPacket(n.world, "udp", at)
		go func() {
			b := make([]byte, 2048)
			for {
				if _, _, err := c.ReadFrom(b); err != nil {
					return
				}
				n.touch(name + " udp")
			}
		}()
	}
}

func (n *internet) touch(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.touched[name]++
}

// untouched fails the test if a canary was reached.
func (n *internet) untouched(t testing.TB) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, times := range n.touched {
		t.Errorf("canary %q was reached %d times", name, times)
	}
}

// name makes the world's name server answer with addresses.
func (n *internet) name(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = nil
	for _, a := range addresses {
		n.names[name] = append(n.names[name], netip.MustParseAddr(a))
	}
}

func (n *internet) nameServer(address string) {
	c := n.listenPacket(n.world, "udp", address+":53")
	go func() {
		b := make([]byte, 2048)
		for {
			size, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := n.answer(b[:size]); answer != nil {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
}

func (n *internet) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := q.Name.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queries = append(n.queries, name)
	addresses, known := n.names[name[:len(name)-1]]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
	for _, a := range addresses {
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// serve serves HTTPS and HTTP for names at address, and records each request.
func (n *internet) serve(address string, handler http.Handler, names ...string) {
	n.t.Helper()
	noting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		n.mu.Lock()
		n.served = append(n.served, fmt.Sprintf("%s %s %s://%s%s", r.Proto, r.Method, scheme, r.Host, r.URL.RequestURI()))
		n.mu.Unlock()
		handler.ServeHTTP(w, r)
	})
	for _, name := range names {
		n.name(name, address)
	}
	plain := n.listen(n.world, "tcp", net.JoinHostPort(address, "80"))
	over := n.listen(n.world, "tcp", net.JoinHostPort(address, "443"))
	for l, f := range map[net.Listener]func(*http.Server) error{
		plain: func(s *http.Server) error { return s.Serve(plain) },
		over:  func(s *http.Server) error { return s.ServeTLS(over, "", "") },
	} {
		server := &http.Server{Handler: noting, TLSConfig: &tls.Config{Certificates: []tls.Certificate{n.ca.certificate(n.t, names...)}}, ReadHeaderTimeout: time.Minute}
		go func() { _ = f(server) }()
		n.t.Cleanup(func() { server.Close(); l.Close() })
	}
}

// requests returns the requests that the servers received, in order.
func (n *internet) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.served...)
}

// start starts cmd on the internet's host.
func (n *internet) start(cmd *exec.Cmd) {
	n.t.Helper()
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+n.roots)
	n.in(n.host, cmd.Start)
}

// fumehood returns the command for a desk's run on the internet's host, whose
// resolver is the world's.
func (n *internet) fumehood(ctx context.Context, d desk, name string, more ...string) *exec.Cmd {
	return d.command(ctx, d.runArgs(name, append([]string{"--resolver", routerAddress}, more...)...)...)
}

// An authority signs the servers' certificates.
type authority struct {
	certificateOf *x509.Certificate
	key           *ecdsa.PrivateKey
	pem           []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificateOf: template, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificateOf, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
