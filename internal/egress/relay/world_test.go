// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A world is a relay between a policy and a server, on loopback.
type world struct {
	t       *testing.T
	name    string
	port    int // the port that policy is asked about, not the one dialed
	connect proposal.EgressDecision
	options Options
	policy  func(proposal.Egress) proposal.EgressDecision
	server  string // the address that is dialed
	noUp    bool   // the target has no connection

	certificate string // presented by the server

	mu    sync.Mutex
	asked []proposal.Egress
	flows []proposal.Flow
	dials int
	ctx   context.Context
	wait  sync.WaitGroup
	gate  string
}

var (
	allow     = proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"test.allow"}}
	intercept = proposal.EgressDecision{Effect: proposal.Allow, Intercept: true}
	raw       = proposal.EgressDecision{Effect: proposal.Allow, Raw: true}
	deny      = proposal.EgressDecision{Reason: &proposal.Reason{Rule: "test.deny", Message: "not here", Suggestion: "ask nicely"}}
)

// serverCA signs for the tests' servers, and the relay trusts it.
var serverCA = func() *CA {
	ca, err := NewCA()
	if err != nil {
		panic(err)
	}
	return ca
}()

func newWorld(t *testing.T, port int, d proposal.EgressDecision) *world {
	w := &world{t: t, name: "allowed.example", certificate: "allowed.example", port: port, connect: d,
		policy: func(proposal.Egress) proposal.EgressDecision { return allow }}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); w.wait.Wait() })
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(serverCA.cert)
	w.options = Options{CA: ca, Roots: roots,
		Ask: func(_ context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			w.mu.Lock()
			w.asked = append(w.asked, e)
			policy := w.policy
			w.mu.Unlock()
			d := policy(e)
			if d.Reason != nil && d.Reason.Rule == "error" {
				return d, errors.New("no policy")
			}
			return d, nil
		},
		Report: func(f proposal.Flow) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flows = append(w.flows, f)
		},
	}
	return w
}

// https serves h with a certificate for the world's name.
func (w *world) https(h http.Handler) {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = silent
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serverCA.leafCertificate(w.certificate) }}
	s.StartTLS()
	w.t.Cleanup(s.Close)
	w.server = s.Listener.Addr().String()
}

func (w *world) http(h http.Handler) {
	s := httptest.NewServer(h)
	s.Config.ErrorLog = silent
	w.t.Cleanup(s.Close)
	w.server = s.Listener.Addr().String()
}

// tcp serves each connection with f.
func (w *world) tcp(f func(net.Conn)) {
	l := listen(w.t)
	w.server = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// start returns the relay's address for programs.
func (w *world) start() string {
	r, err := New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	l := listen(w.t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			d := w.connect
			w.mu.Unlock()
			w.wait.Go(func() { r.Serve(w.ctx, c, w.target(), d) })
		}
	}()
	w.gate = l.Addr().String()
	return w.gate
}

func (w *world) target() Target {
	t := Target{Dial: w.dial, Egress: proposal.Egress{
		Command: "one", Kind: points.EgressConnect, Name: w.name,
		Address: "192.0.2.7", Port: w.port, Protocol: "tcp",
	}}
	if w.name == "" {
		t.Egress.Address = netip.MustParseAddr("192.0.2.7").String()
	}
	if !w.noUp && w.server != "" {
		t.Upstream, _ = w.dial(w.ctx)
	}
	return t
}

func (w *world) dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	w.dials++
	w.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", w.server)
}

// client returns a program's HTTP client, which reaches every name at the relay.
func (w *world) client(h2 bool) *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", w.gate)
		},
		TLSClientConfig:       &tls.Config{RootCAs: w.trust()},
		ForceAttemptHTTP2:     h2,
		DisableCompression:    true,
		ExpectContinueTimeout: 5 * time.Second,
	}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// trust returns the roots that a program trusts: the run's CA if it is intercepted,
// else the server's.
func (w *world) trust() *x509.CertPool {
	pool := x509.NewCertPool()
	if w.connect.Intercept {
		pool.AppendCertsFromPEM(w.options.CA.CertificatePEM())
	} else {
		pool.AddCert(serverCA.cert)
	}
	return pool
}

// talk sends text to the relay and returns all that comes back.
func (w *world) talk(text string) string {
	c, err := net.Dial("tcp", w.gate)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, text)
	c.(*net.TCPConn).CloseWrite()
	back, _ := io.ReadAll(c)
	return string(back)
}

// reported waits for n flows of a kind, and returns them.
func (w *world) reported(kind string, n int) []proposal.Flow {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		flows := slices.Clone(w.flows)
		w.mu.Unlock()
		flows = slices.DeleteFunc(flows, func(f proposal.Flow) bool { return f.Egress.Kind != kind })
		if len(flows) >= n {
			return flows
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("reported of %d flows of kind %s, want %d: %+v", len(flows), kind, n, flows)
		}
	}
}

func (w *world) questions(kind string) []proposal.Egress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.asked), func(e proposal.Egress) bool { return e.Kind != kind })
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}
