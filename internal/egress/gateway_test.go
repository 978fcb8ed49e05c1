// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestAllowedName(t *testing.T) {
	w, g, r := open(t, nil)
	got, err := get(g.client(w.pool, ""), "https://allowed.example/x")
	if err != nil || got != "200 GET allowed.example /x sni=allowed.example" {
		t.Errorf("%q, %v", got, err)
	}
	r.wait(2)
	if got, err = get(g.client(w.pool, ""), "http://allowed.example/y"); err != nil || got != "200 GET allowed.example /y sni=" {
		t.Errorf("%q, %v", got, err)
	}
	r.wait(5) // connections still open would be cut
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"lookup allowed.example :0 allow",
		"connection allowed.example 9.9.9.9:443 allow sni=allowed.example",
		"lookup allowed.example :0 allow",
		"request allowed.example 9.9.9.9:80 allow GET /y 200",
		"connection allowed.example 9.9.9.9:80 allow",
	}
	if d := cmp.Diff(want, r.lines()); d != "" {
		t.Error(d)
	}
	for _, e := range r.events {
		f := e.Flow
		if e.Command != "c1" || f.Egress.Command != "c1" || f.Egress.Phase != proposal.PhaseRun || len(f.Egress.Grants) == 0 || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
		if e.Kind == proposal.EventConnection && (f.Sent == 0 || f.Received == 0 || !strings.HasPrefix(f.Inside, "198.18.")) {
			t.Errorf("%+v", f)
		}
	}
	if got := w.connections(); !slices.Equal(got, []string{"9.9.9.9:443", "9.9.9.9:80"}) {
		t.Errorf("connected to %v", got)
	}
}

// Where policy requires it, TLS ends at the gateway with a certificate of the run's
// authority.
func TestIntercepted(t *testing.T) {
	w, g, r := open(t, nil)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(g.CACertificate()) {
		t.Fatalf("no certificate: %s", g.CACertificate())
	}
	got, err := get(g.client(roots, ""), "https://www.allowed.example/x?q")
	if err != nil || got != "200 GET www.allowed.example /x sni=www.allowed.example" {
		t.Errorf("%q, %v", got, err)
	}
	resp, err := g.client(roots, "").Post("https://www.allowed.example/up", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("a POST got %d", resp.StatusCode)
	}
	if _, err := get(g.client(w.pool, ""), "https://www.allowed.example/"); err == nil {
		t.Error("the server's own certificate came through")
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(r.lines(), "\n")
	for _, want := range []string{"request www.allowed.example 9.9.9.9:443 allow", "GET /x 200", "request www.allowed.example 9.9.9.9:443 deny", "POST /up 403 (policy)"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
}

// refusals are attempts to get out; behind each is a server that must not be reached.
var refusals = []struct {
	name string
	try  func(*world, *Gateway) error
	want string // of the last event
}{
	{"name", fetch("https://evil.example/"), "lookup evil.example :0 deny (policy)"},
	{"name over http", fetch("http://evil.example/"), "lookup evil.example :0 deny (policy)"},
	{"address", fetch("http://" + evilAddr + "/"), "connection  9.9.9.10:80 deny (policy)"},
	{"address of an allowed name", fetch("https://" + allowedAddr + "/"), "connection  9.9.9.9:443 deny (policy)"},
	{"address, IPv6", fetch("http://[" + allowedAddr6 + "]/"), "connection  2620:fe::9:80 deny (policy)"},
	{"mapped address", fetch("http://[::ffff:9.9.9.10]/"), ""},
	{"metadata", fetch("http://" + metadataAddr + "/"), "connection  169.254.169.254:80 deny (policy)"},
	{"private", fetch("http://" + privateAddr + "/"), "connection  10.9.9.9:80 deny (policy)"},
	{"host", fetch("http://" + hostAddr + ":443/"), "connection  9.9.9.1:443 deny (policy)"},
	{"port", fetch("http://allowed.example:22/"), "connection allowed.example 9.9.9.9:22 deny (policy)"},
	{"synthetic address of no name", fetch("http://198.18.7.7/"), "connection  198.18.7.7:80 deny (address)"},
	{"name of the host", fetch("https://host.example/"), "lookup host.example 9.9.9.1:0 allow (address)"},
	{"name of loopback", fetch("https://local.example/"), "lookup local.example 127.0.0.1:0 allow (address)"},
	{"name of metadata", fetch("http://metadata.example/"), "lookup metadata.example 169.254.169.254:0 allow (address)"},
	{"name of a private address", fetch("http://private.example/"), "lookup private.example 10.9.9.9:0 allow (address)"},
	{"name of one private address", fetch("http://mixed.example/"), "lookup mixed.example 10.9.9.9:0 allow (address)"},
	{"name of nothing", fetch("http://gone.example/"), "lookup gone.example :0 allow (unresolved)"},
	{"other server name", func(w *world, g *Gateway) error {
		_, err := get(g.client(w.pool, "evil.example"), "https://allowed.example/")
		return err
	}, "connection allowed.example 9.9.9.9:443 allow sni=evil.example (mismatch)"},
	{"datagram", send("udp", "9.9.9.9:443"), "datagram  9.9.9.9:443 deny (policy)"},
	{"foreign resolver", send("udp", dnsAddr+":53"), "datagram  9.9.9.53:53 deny (policy)"},
	{"foreign resolver over TCP", fetch("http://" + dnsAddr + ":53/"), "connection  9.9.9.53:53 deny (policy)"},
}

func fetch(url string) func(*world, *Gateway) error {
	return func(w *world, g *Gateway) error {
		got, err := get(g.client(w.pool, ""), url)
		if err == nil && strings.HasPrefix(got, "403 ") {
			return errors.New(got)
		}
		return err
	}
}

// send sends datagrams until one is refused or answered.
func send(network, addr string) func(*world, *Gateway) error {
	return func(_ *world, g *Gateway) error {
		conn, err := g.dialAddr(context.Background(), network, addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				return err
			}
			if _, err := conn.Read(make([]byte, 100)); err != nil {
				return err
			}
		}
	}
}

func TestRefused(t *testing.T) {
	w, g, r := open(t, nil)
	for i, test := range refusals {
		err := test.try(w, g)
		var silence net.Error
		if err == nil || errors.As(err, &silence) && silence.Timeout() {
			t.Errorf("%s: passes, or is not refused: %v", test.name, err)
		}
		if err := g.End(); err != nil {
			t.Fatal(err)
		}
		if lines := r.lines(); test.want != "" && (len(lines) == 0 || lines[len(lines)-1] != test.want) {
			t.Errorf("%s: reported\n%s\nwant last\n%s", test.name, strings.Join(lines, "\n"), test.want)
		}
		r.mu.Lock()
		r.events = nil
		r.mu.Unlock()
		if err := g.Begin(t.Context(), fmt.Sprint("c", i), granted); err != nil {
			t.Fatal(err)
		}
	}
	// The TLS hello for another name is read before anything is forwarded, but after the
	// connection to the server.
	if got := w.connections(); !slices.Equal(got, []string{"9.9.9.9:443"}) {
		t.Errorf("connected to %v", got)
	}
}

// Where policy allows private networks, they can be reached, and nothing else can.
func TestPrivate(t *testing.T) {
	w, g, _ := open(t, func(o *Options) {
		o.Decide = func(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			d, err := house(ctx, e)
			d.Private = true
			return d, err
		}
	})
	if got, err := get(g.client(w.pool, ""), "http://private.example/"); err != nil || got != "200 GET private.example / sni=" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"metadata", "local", "host"} {
		if got, err := get(g.client(w.pool, ""), "http://"+name+".example/"); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := w.connections(); !slices.Equal(got, []string{privateAddr + ":80"}) {
		t.Errorf("connected to %v", got)
	}
}

// A name that resolves elsewhere the next time still leads to the address that was
// checked.
func TestRebinding(t *testing.T) {
	w, g, _ := open(t, nil)
	c := g.client(w.pool, "")
	for range 3 {
		if _, err := get(c, "http://rebind.example/"); err != nil && !strings.Contains(err.Error(), "refused") && !strings.Contains(err.Error(), "no such host") {
			t.Error(err)
		}
	}
	for _, to := range w.connections() {
		if to != "9.9.9.9:80" {
			t.Errorf("connected to %s", to)
		}
	}
}

// An address becomes invalid when its command ends, and its connections are cut.
func TestEnd(t *testing.T) {
	w, g, r := open(t, nil)
	conn, err := g.dial(t.Context(), "tcp", "allowed.example:7")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("ehello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	inside := conn.RemoteAddr().String()
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the connection lives: %v", err)
	}
	if lines := r.lines(); lines[len(lines)-1] != "connection allowed.example 9.9.9.9:7 allow (cut)" {
		t.Errorf("reported %q", lines)
	}
	reported := len(r.lines())
	w.touched.Clear()
	closed := func(when string) {
		for _, addr := range []string{inside, "9.9.9.9:443"} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			if conn, err := g.dialAddr(ctx, "tcp", addr); err == nil {
				conn.Close()
				t.Errorf("%s: %s can be connected to", when, addr)
			}
			cancel()
		}
		if got := w.connections(); len(got) > 0 {
			t.Errorf("%s: connected to %v", when, got)
		}
	}
	closed("between commands")
	if len(r.lines()) != reported {
		t.Errorf("reported between commands: %q", r.lines()[reported:])
	}
	if err := g.Begin(t.Context(), "c2", granted); err != nil {
		t.Fatal(err)
	}
	closed("in the next command")
}

func TestBeginTwice(t *testing.T) {
	_, g, r := open(t, nil)
	if err := g.Begin(t.Context(), "c2", granted); codeOfStop(err) != "gateway.protocol" {
		t.Error(err)
	}
	wantFailure(t, r, "gateway.protocol")
}

func TestStartRefuses(t *testing.T) {
	w, r := outside(t), &record{failed: make(chan error, 1)}
	tests := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no decider", func(o *Options) { o.Decide = nil }, "incomplete"},
		{"no time to decide", func(o *Options) { o.AnswerWithin = 0 }, "incomplete"},
		{"no program", func(o *Options) { o.Argv = []string{"/nowhere"} }, "cannot start"},
		{"another program", func(o *Options) { o.Argv = []string{"/bin/false"} }, "exit status 1"},
		{"roots that are none", func(o *Options) { o.Roots = "x" }, "no certificate among the roots"},
	}
	for _, test := range tests {
		o := optionsFor(w, r)
		test.change(&o)
		g, err := Start(t.Context(), o)
		if err == nil {
			g.Close()
		}
		if codeOfStop(err) != "gateway.start" || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Main does nothing when it is started by hand.
func TestMainByHand(t *testing.T) {
	var said strings.Builder
	if code := Main(&said); code != 3 || !strings.Contains(said.String(), "cannot be started by hand") {
		t.Errorf("%d, %q", code, said.String())
	}
}

func codeOfStop(err error) string {
	var stop *proposal.StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	return ""
}

func wantFailure(t *testing.T, r *record, code string) {
	t.Helper()
	select {
	case err := <-r.failed:
		if codeOfStop(err) != code {
			t.Errorf("failed with %v, want %s", err, code)
		}
	case <-time.After(2 * time.Minute):
		t.Errorf("did not fail with %s", code)
	}
}
