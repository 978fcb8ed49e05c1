// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Proxy{
		"http://proxy.corp:3128":         {Host: "proxy.corp", Port: 3128},
		"proxy:3128":                     {Host: "proxy", Port: 3128},
		"Proxy.Corp":                     {Host: "proxy.corp", Port: 80},
		"https://proxy.corp/":            {Host: "proxy.corp", Port: 443, TLS: true},
		"http://[2001:db8::1]:8080":      {Host: "2001:db8::1", Port: 8080},
		"http://u%40x:p%3Aw@10.0.0.1:80": {Host: "10.0.0.1", Port: 80, Authorization: "Basic dUB4OnA6dw=="},
		"u:p@proxy:1":                    {Host: "proxy", Port: 1, Authorization: "Basic dTpw"},
	} {
		p, err := parseProxy("X", text)
		if err != nil || p.Host != want.Host || p.Port != want.Port || p.TLS != want.TLS || p.Authorization != want.Authorization {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
}

// What cannot be used stops: it must not mean a direct connection. No error quotes a password.
func TestParseRefused(t *testing.T) {
	for _, text := range []string{"socks5://u:hidden@h:1", "socks5h://h", "ftp://h", "http://", "http://u:hidden@h:0", "http://u:hidden@h:99999", "http://u:hidden@h:x",
		"http://u:hidden@h\x00:1", "http://u:hidden@ h:1", "http://u:hid%zzden@h", "http://[fe80::1%25eth0]:1", "http://u:hidden@-h:1", "//:hidden@"} {
		for _, e := range []*httpproxy.Config{{HTTPSProxy: text}, {HTTPProxy: text}} {
			c, err := Parse(e)
			var stop *proposal.StopError
			if !errors.As(err, &stop) || stop.Code != "network.proxy" || len(c.Proxies()) > 0 {
				t.Errorf("%q: %+v, %v", text, c, err)
			} else if strings.Contains(fmt.Sprintf("%v %+v", err, stop), "hidden") {
				t.Errorf("%q is quoted: %v", text, err)
			}
		}
	}
}

func TestSecrets(t *testing.T) {
	c, err := Parse(&httpproxy.Config{HTTPSProxy: "http://user:hidden@p:1", HTTPProxy: "http://token@q:1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Secrets(), " "); got != "dXNlcjpoaWRkZW4= hidden dG9rZW46 token" {
		t.Error(got)
	}
	for _, p := range c.Proxies() {
		if strings.Contains(p.String(), "hidden") || strings.Contains(p.String(), "token") {
			t.Error(p)
		}
	}
}

func TestFor(t *testing.T) {
	c, err := Parse(&httpproxy.Config{HTTPSProxy: "http://s:1", HTTPProxy: "http://p:2", NoProxy: ".corp, own.example, 192.0.2.0/24, only.example:8443"})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDialer(c, nil)
	for place, want := range map[string]string{
		"a.example:443": "s:1", "a.example:22": "s:1", "a.example:80": "p:2", "a.corp:443": "", "a.corp:80": "", "own.example:443": "", "x.own.example:443": "",
		"notown.example:443": "s:1", "192.0.2.7:443": "", "192.0.3.7:443": "s:1", "only.example:8443": "", "only.example:443": "s:1", "127.0.0.1:443": "", "[::1]:443": "",
		"[2001:db8::1]:443": "s:1", "localhost:443": "",
	} {
		host, text, _ := net.SplitHostPort(place)
		port, _ := netip.ParseAddrPort("1.1.1.1:" + text)
		got := ""
		if p := d.ProxyFor(host, port.Port()); p != nil {
			got = p.String()
		}
		if got != want {
			t.Errorf("%s: through %q, want %q", place, got, want)
		}
	}
	if NewDialer(Config{}, nil).ProxyFor("a.example", 443) != nil || !d.UsesProxyFor("a.example") || d.UsesProxyFor("a.corp") {
		t.Error("a proxy applies where there is none, or the reverse")
	}
	onlyHTTPS, _ := Parse(&httpproxy.Config{HTTPSProxy: "s:1", NoProxy: "*"})
	if NewDialer(onlyHTTPS, nil).ProxyFor("a.example", 443) != nil {
		t.Error("NO_PROXY=* does not count")
	}
}

// A server plays a proxy: it reads one request and calls answer.
type server struct {
	config Config
	roots  *x509.CertPool
	asked  chan *http.Request
}

func serve(t *testing.T, secured bool, user string, answer func(net.Conn, *http.Request)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &server{roots: x509.NewCertPool(), asked: make(chan *http.Request, 100)}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	text := "http://" + user + at.String()
	if secured {
		l, text = tls.NewListener(l, s.certificate(t)), "https"+strings.TrimPrefix(text, "http")
	}
	if s.config, err = Parse(&httpproxy.Config{HTTPSProxy: text}); err != nil {
		t.Fatal(err)
	}
	if err := s.config.ResolveProxies(t.Context(), net.DefaultResolver.LookupNetIP); err != nil {
		t.Fatal(err)
	}
	go s.accept(l, answer)
	return s
}

func (s *server) accept(l net.Listener, answer func(net.Conn, *http.Request)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				s.asked <- r
				answer(conn, r)
			}
		}()
	}
}

func (s *server) certificate(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (s *server) dial(timeout time.Duration) (net.Conn, error) {
	d := NewDialer(s.config, s.roots)
	if timeout > 0 {
		d.timeout = timeout
	}
	return d.Dial(context.Background(), d.ProxyFor("a.example", 443), "a.example", 443)
}

func echo(conn net.Conn, _ *http.Request) {
	// The first bytes of the far end may come with the answer.
	io.WriteString(conn, "HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nearly ")
	io.Copy(conn, conn)
}

func TestDial(t *testing.T) {
	for name, test := range map[string]struct {
		secured    bool
		user, want string
	}{
		"plain": {}, "TLS": {secured: true}, "credentials": {user: "user:hidden@", want: "Basic dXNlcjpoaWRkZW4="}, "both": {true, "user:hidden@", "Basic dXNlcjpoaWRkZW4="},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, test.secured, test.user, echo)
			conn, err := s.dial(0)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			r := <-s.asked
			if r.Method != "CONNECT" || r.RequestURI != "a.example:443" || r.Host != "a.example:443" || r.Header.Get("Proxy-Authorization") != test.want || len(r.Header) > 2 {
				t.Errorf("asked %s %s, header %v", r.Method, r.RequestURI, r.Header)
			}
			io.WriteString(conn, "late")
			conn.(interface{ CloseWrite() error }).CloseWrite()
			if got, err := io.ReadAll(conn); err != nil || string(got) != "early late" {
				t.Errorf("read %q, %v", got, err)
			}
		})
	}
}

// Whatever a proxy answers, Dial ends in time, reads little, and quotes nothing of it.
func TestHostile(t *testing.T) {
	lanetest.SkipShort(t)
	say := func(text string) func(net.Conn, *http.Request) {
		return func(c net.Conn, _ *http.Request) { io.WriteString(c, text) }
	}
	sent := make(chan int, 1)
	for name, test := range map[string]struct {
		answer func(net.Conn, *http.Request)
		want   string
	}{
		"407":            {say("HTTP/1.1 407 hidden\r\nProxy-Authenticate: Basic realm=hidden\r\n\r\nhidden"), "its answer is 407"},
		"403":            {say("HTTP/1.1 403 Forbidden\r\n\r\n"), "its answer is 403"},
		"redirect":       {say("HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n"), "its answer is 302"},
		"201":            {say("HTTP/1.1 201 hidden\r\n\r\n"), "its answer is 201"},
		"interim":        {say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), "its answer is 100"},
		"echo of header": {func(c net.Conn, r *http.Request) { fmt.Fprintf(c, "%s\r\n\r\n", r.Header.Get("Proxy-Authorization")) }, "not the head of an HTTP answer"},
		"not HTTP":       {say("SSH-2.0-x\r\n\r\n"), "not the head of an HTTP answer"},
		"bare newlines":  {func(c net.Conn, r *http.Request) { say("HTTP/1.1 200 OK\n\n")(c, r); io.Copy(io.Discard, c) }, "in time"},
		"nothing":        {func(c net.Conn, _ *http.Request) { io.Copy(io.Discard, c) }, "in time"},
		"end":            {say("HTTP/1.1 200 OK\r\n"), "EOF"},
		"dribble": {func(c net.Conn, _ *http.Request) {
			for i := 0; ; i++ {
				if _, err := c.Write([]byte{"HTTP/1.1 200 OK\r\nX: "[min(i, 19)]}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}, "in time"},
		"huge": {func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			n := 0
			for {
				m, err := io.WriteString(c, "X: "+strings.Repeat("x", 4<<10)+"\r\n")
				if n += m; err != nil || n > 64<<20 {
					sent <- n
					return
				}
			}
		}, "longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			limit := 20 * time.Second
			if test.want == "in time" {
				limit = 2 * time.Second // to connect on a busy machine, too
			}
			conn, err := serve(t, false, "user:hidden@", test.answer).dial(limit)
			if err == nil {
				conn.Close()
				t.Fatal("connected")
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "hidden") || strings.Contains(text, "dXNlcj") {
				t.Errorf("%v, want %q", err, test.want)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if name == "huge" {
				if n := <-sent; n > 32<<20 {
					t.Errorf("%d bytes were taken", n)
				}
			}
		})
	}
}

// A proxy whose certificate does not verify never gets the credentials.
func TestUntrusted(t *testing.T) {
	s := serve(t, true, "user:hidden@", echo)
	s.roots = x509.NewCertPool()
	if _, err := s.dial(0); err == nil || err.Error() != "cannot connect to the upstream proxy: its certificate is not trusted" {
		t.Errorf("%v", err)
	}
	select {
	case r := <-s.asked:
		t.Errorf("asked %v", r.Header)
	default:
	}
}

// An end of the command ends a Dial at once, and an absent proxy is an error without its address.
func TestAbsent(t *testing.T) {
	s := serve(t, false, "", func(c net.Conn, _ *http.Request) { io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.asked; cancel() }()
	d := NewDialer(s.config, nil)
	if _, err := d.Dial(ctx, s.config.HTTPS, "a.example", 443); err == nil || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
	s.config.HTTPS.Addrs, s.config.HTTPS.Port = []netip.Addr{netip.MustParseAddr("127.0.0.1")}, 1
	if _, err := s.dial(0); err == nil || err.Error() != "cannot connect to the upstream proxy: connect: connection refused" {
		t.Errorf("%v", err)
	}
}

func TestResolve(t *testing.T) {
	c, err := Parse(&httpproxy.Config{HTTPSProxy: "proxy.corp:1"})
	if err != nil {
		t.Fatal(err)
	}
	answer := slices.Repeat([]netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}, 100)
	if err := c.ResolveProxies(t.Context(), func(context.Context, string, string) ([]netip.Addr, error) { return answer, nil }); err != nil || len(c.HTTPS.Addrs) != maxAddrs {
		t.Errorf("%v, %v", c.HTTPS.Addrs, err)
	}
	d := NewDialer(c, nil)
	private := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	if !d.Is("proxy.corp", nil, 1) || !d.Is("other.example", private, 1) || d.Is("other.example", private, 2) || d.Is("other.example", nil, 1) {
		t.Error("the proxy itself is not recognized, or something else is")
	}
	var stop *proposal.StopError
	if err := c.ResolveProxies(t.Context(), func(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }); !errors.As(err, &stop) || stop.Code != "network.proxy" {
		t.Errorf("%v", err)
	}
}
