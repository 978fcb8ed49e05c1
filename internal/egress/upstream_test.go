// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A company is the proxy of a company's network, outside. It knows names that no resolver does.
type company struct {
	w      *world
	answer string // in place of a connection, if not ""

	mu    sync.Mutex
	asked []string
}

const companyAddr = dnsAddr + ":3128"

// take returns what the proxy was asked for since the last call.
func (c *company) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

func (c *company) serve(conn net.Conn) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	c.mu.Lock()
	c.asked = append(c.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization")))
	c.mu.Unlock()
	if c.answer != "" {
		io.WriteString(conn, c.answer)
		io.Copy(io.Discard, conn)
		return
	}
	_, port, _ := net.SplitHostPort(r.RequestURI)
	var to net.Conn
	err = netnstest.RunInNamespace(c.w.ns, func() (err error) {
		to, err = net.Dial("tcp", net.JoinHostPort(allowedAddr, port))
		return err
	})
	if err != nil {
		return
	}
	defer to.Close()
	io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { io.Copy(to, conn); to.(*net.TCPConn).CloseWrite() }()
	io.Copy(conn, to)
}

// openBehind opens a gateway behind a company's proxy.
func openBehind(t *testing.T, user, noProxy, answer string, change func(*Options)) (*world, *Gateway, *record, *company) {
	t.Helper()
	return openBehindURL(t, "http://"+user+companyAddr, noProxy, answer, change)
}

func openBehindURL(t *testing.T, text, noProxy, answer string, change func(*Options)) (*world, *Gateway, *record, *company) {
	t.Helper()
	c := &company{answer: answer}
	lookup := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(dnsAddr)}, nil
	}
	w, g, r := open(t, func(o *Options) {
		proxies, err := upstream.Parse(&httpproxy.Config{HTTPSProxy: text, HTTPProxy: text, NoProxy: noProxy})
		if err != nil {
			t.Fatal(err)
		}
		if err := proxies.ResolveProxies(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		o.Proxies = proxies
		o.Decide = func(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			d, err := house(ctx, e)
			d.Unresolved = e.Name != "wild.example"
			if e.Port == 3128 {
				d = proposal.EgressDecision{Effect: proposal.Allow, Raw: true, Rules: []string{"test.any"}}
			}
			return d, err
		}
		if change != nil {
			change(o)
		}
	})
	c.w = w
	l, err := listen(w.ns, companyAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if strings.HasPrefix(text, "https") {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{w.cert}})
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return w, g, r, c
}

// reported reports whether a line is among lines. The end of the command may have cut what the
// client had not closed yet.
func reported(lines []string, line string) bool {
	return slices.Contains(lines, line) || slices.Contains(lines, line+" (cut)")
}

func TestUpstream(t *testing.T) {
	w, g, r, c := openBehind(t, "user:hidden@", "fat.example", "", nil)
	basic := " Basic dXNlcjpoaWRkZW4="
	for _, test := range []struct{ url, page, asked, record string }{
		{"https://allowed.example/", "200 GET allowed.example / sni=allowed.example", "CONNECT allowed.example:443" + basic, "connection allowed.example 9.9.9.9:443 allow sni=allowed.example"},
		{"https://www.allowed.example/", "200 GET www.allowed.example / sni=www.allowed.example", "CONNECT www.allowed.example:443" + basic, "connection www.allowed.example 9.9.9.9:443 allow sni=www.allowed.example"},
		{"http://allowed.example/", "200 GET allowed.example / sni=", "CONNECT allowed.example:80" + basic, "connection allowed.example 9.9.9.9:80 allow"},
		// Only the proxy knows the name.
		{"http://gone.example/", "200 GET gone.example / sni=", "CONNECT gone.example:80" + basic, "connection gone.example :80 allow"},
		// NO_PROXY.
		{"https://fat.example/", "200 GET fat.example / sni=fat.example", "", "connection fat.example 9.9.9.9:443 allow sni=fat.example"},
		// What is known of a name's addresses is checked.
		{"https://private.example/", "", "", "lookup private.example 10.9.9.9:0 allow (address)"},
		{"http://mixed.example/", "", "", "lookup mixed.example 10.9.9.9:0 allow (address)"},
		{"http://metadata.example/", "", "", "lookup metadata.example 169.254.169.254:0 allow (address)"},
		// A name without addresses needs more than a wildcard.
		{"http://wild.example/", "", "", "lookup wild.example :0 allow (unresolved)"},
		// Another name is not asked for anywhere.
		{"http://evil.example/", "", "", "lookup evil.example :0 deny (policy)"},
	} {
		roots := w.pool
		if strings.Contains(test.url, "www.") {
			roots = x509.NewCertPool()
			roots.AppendCertsFromPEM(g.CACertificate())
		}
		page, err := get(g.client(roots, ""), test.url)
		if page != test.page || (err == nil) != (test.page != "") {
			t.Errorf("%s: %q, %v", test.url, page, err)
		}
		if got := strings.Join(c.take(), " "); got != test.asked {
			t.Errorf("%s: the proxy was asked %q, want %q", test.url, got, test.asked)
		}
		if err := g.End(); err != nil {
			t.Fatal(err)
		}
		if lines := r.lines(); !reported(lines, test.record) {
			t.Errorf("%s: reported\n%s\nwant\n%s", test.url, strings.Join(lines, "\n"), test.record)
		}
		if text := fmt.Sprintf("%+v", r.events); strings.Contains(text, "hidden") || strings.Contains(text, "dXNlcj") {
			t.Errorf("%s: the record has the proxy's password: %s", test.url, text)
		}
		r.mu.Lock()
		r.events = nil
		r.mu.Unlock()
		if err := g.Begin(t.Context(), test.url, proposal.Grant{Network: append([]string{"wild.example"}, everyone...), Phase: proposal.PhaseRun}); err != nil {
			t.Fatal(err)
		}
	}
}

// Through a proxy with TLS, hosts are reached whether or not their own TLS is intercepted.
func TestUpstreamTLS(t *testing.T) {
	w, g, _, c := openBehindURL(t, "https://user:hidden@evil.example:3128", "", "", nil)
	ours := x509.NewCertPool()
	ours.AppendCertsFromPEM(g.CACertificate())
	for name, roots := range map[string]*x509.CertPool{"allowed.example": w.pool, "www.allowed.example": ours} {
		if page, err := get(g.client(roots, ""), "https://"+name+"/"); err != nil || page != "200 GET "+name+" / sni="+name {
			t.Errorf("%q, %v", page, err)
		}
		if got := strings.Join(c.take(), " "); got != "CONNECT "+name+":443 Basic dXNlcjpoaWRkZW4=" {
			t.Errorf("asked %q", got)
		}
	}
}

// A proxy with TLS whose certificate is for another name gets nothing.
func TestUpstreamUntrusted(t *testing.T) {
	w, g, r, c := openBehindURL(t, "https://user:hidden@proxy.example:3128", "", "", nil)
	if page, err := get(g.client(w.pool, ""), "https://allowed.example/"); err == nil {
		t.Errorf("reached: %s", page)
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	f := r.events[len(r.events)-1].Flow
	if f.Code != "upstream" || f.Decision.Reason.Message != "cannot connect to the upstream proxy: its certificate is not trusted" || len(c.take()) > 0 || len(w.connections()) > 0 {
		t.Errorf("reported %+v, %+v; connected to %v", f, f.Decision.Reason, w.connections())
	}
}

// Without any name server, names that are granted themselves still reach the proxy, and only it.
func TestUpstreamWithoutNames(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel() // one case waits for a server that does not answer
	for name, servers := range map[string][]netip.AddrPort{"none": nil, "dead": {netip.MustParseAddrPort(evilAddr + ":53")}} {
		t.Run(name, func(t *testing.T) {
			w, g, r, c := openBehind(t, "", "fat.example", "", func(o *Options) { o.Resolvers = servers })
			if page, err := get(g.client(w.pool, ""), "https://allowed.example/"); err != nil || page != "200 GET allowed.example / sni=allowed.example" {
				t.Errorf("%q, %v", page, err)
			}
			if got := strings.Join(c.take(), " "); got != "CONNECT allowed.example:443" {
				t.Errorf("asked %q", got)
			}
			if _, err := get(g.client(w.pool, ""), "https://fat.example/"); err == nil {
				t.Error("a name without addresses was reached directly")
			}
			if err := g.End(); err != nil {
				t.Fatal(err)
			}
			if lines := r.lines(); !reported(lines, "connection allowed.example :443 allow sni=allowed.example") {
				t.Errorf("reported %s", strings.Join(lines, "\n"))
			}
		})
	}
}

// What the proxy refuses is not reached another way, and the record has its answer.
func TestUpstreamRefuses(t *testing.T) {
	w, g, r, c := openBehind(t, "user:hidden@", "", "HTTP/1.1 407 Nope dXNlcjpoaWRkZW4=\r\n\r\n", nil)
	if page, err := get(g.client(w.pool, ""), "https://allowed.example/"); err == nil {
		t.Errorf("reached: %s", page)
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	f := r.events[len(r.events)-1].Flow
	if f.Code != "upstream" || f.Status != 407 || f.Refused() || f.Decision.Reason == nil || f.Decision.Reason.Message != "the upstream proxy refused the connection: its answer is 407" {
		t.Errorf("reported %+v, %+v", f, f.Decision.Reason)
	}
	if asked, reached := c.take(), w.connections(); len(asked) != 1 || len(reached) != 0 {
		t.Errorf("asked %q, connected to %v", asked, reached)
	}
}

// A proxy that does not answer does not outlast the command.
func TestUpstreamHangs(t *testing.T) {
	w, g, r, c := openBehind(t, "", "", "HTTP/1.1 200 O", nil)
	go get(g.client(w.pool, ""), "https://allowed.example/")
	for end := time.Now().Add(time.Minute); len(c.take()) == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if err := g.End(); err != nil {
		t.Error(err)
	}
	// It was cut: a Dial that the proxy kept waiting until its time was up says something else.
	if lines := r.lines(); !slices.Contains(lines, "connection allowed.example 9.9.9.9:443 allow (cut)") {
		t.Errorf("reported %s", strings.Join(lines, "\n"))
	}
}

// An address that is not public is not requested from the proxy either, even if policy allows
// the connection: the proxy, which would connect, refuses nothing.
func TestUpstreamAddress(t *testing.T) {
	_, g, r, c := openBehind(t, "", "", "", func(o *Options) {
		o.Decide = func(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
			return proposal.EgressDecision{Effect: proposal.Allow, Raw: true, Rules: []string{"test.any"}}, nil
		}
	})
	addrs := []string{privateAddr, metadataAddr, hostAddr}
	for _, addr := range addrs {
		if conn, err := g.dialAddr(t.Context(), "tcp", addr+":80"); err == nil {
			conn.Close()
			t.Errorf("%s: connected", addr)
		}
	}
	conn, err := g.dialAddr(t.Context(), "tcp", allowedAddr+":80")
	if err != nil {
		t.Fatalf("a public address: %v", err)
	}
	conn.Close()
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	if asked := c.take(); !slices.Equal(asked, []string{"CONNECT " + allowedAddr + ":80"}) {
		t.Errorf("the proxy was asked %q", asked)
	}
	for _, addr := range addrs {
		if want := "connection  " + addr + ":80 allow (address)"; !slices.Contains(r.lines(), want) {
			t.Errorf("reported\n%s\nwant\n%s", strings.Join(r.lines(), "\n"), want)
		}
	}
}

// A program never talks to the proxy itself, which would connect it to anything.
func TestUpstreamItself(t *testing.T) {
	lanetest.SkipShort(t)
	for name, noProxy := range map[string]string{"through itself": "", "directly": "*"} {
		t.Run(name, func(t *testing.T) {
			_, g, r, c := openBehind(t, "", noProxy, "", nil)
			if conn, err := g.dialAddr(t.Context(), "tcp", companyAddr); err == nil {
				conn.Close()
				t.Error("connected")
			}
			if err := g.End(); err != nil {
				t.Fatal(err)
			}
			if lines := r.lines(); len(c.take()) > 0 || !slices.Contains(lines, "connection  9.9.9.53:3128 allow (address)") {
				t.Errorf("reported %s", strings.Join(lines, "\n"))
			}
		})
	}
}
