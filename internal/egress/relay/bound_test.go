// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/segment"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestRaw(t *testing.T) {
	w := newWorld(t, 22, raw)
	w.tcp(func(c net.Conn) { io.WriteString(c, "SSH-2.0-x\r\n"); io.Copy(c, c) })
	w.start()
	data := strings.Repeat("\x00\x01raw", 1<<18)
	if back := w.talk(data); back != "SSH-2.0-x\r\n"+data {
		t.Errorf("%d bytes came back of %d", len(back), len(data))
	}
	f := w.reported(points.EgressConnect, 1)[0]
	if f.Code != "" || f.Sent != int64(len(data)) || f.Received != int64(len(data)+11) {
		t.Errorf("reported %+v", f)
	}
}

// The first bytes of a raw connection tell for which host they are, where they can be read, and
// whatever they are they pass unchanged.
func TestRawServerName(t *testing.T) {
	hello := func() string {
		client, server := net.Pipe()
		go tls.Client(client, &tls.Config{ServerName: "tls.example"}).Handshake()
		b := make([]byte, 1<<14)
		n, _ := server.Read(b)
		server.Close()
		return string(b[:n])
	}()
	for _, tt := range []struct{ data, want string }{
		{hello, "tls.example"},
		{hello[:len(hello)/2], ""},
		{"GET /x HTTP/1.1\r\nHost: WWW.web.example:8080\r\n\r\n", "www.web.example"},
		{"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n", "2001:db8::1"},
		{"GET / HTTP/1.0\r\n\r\n", ""},
		{"GET / HTTP/1.1\r\nHost: \x00\r\n\r\n", ""},
		{"POST / HTTP/1.1\r\nHost: long.example\r\nContent-Length: 99999999\r\n\r\n" + strings.Repeat("x", 1<<16), "long.example"},
		{"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<16) + "\r\nHost: late.example\r\n\r\n", ""},
		{"EHLO x\r\n", ""}, {"\x16", ""}, {"", ""},
	} {
		w := newWorld(t, 443, raw)
		w.tcp(func(c net.Conn) { io.Copy(c, c) })
		w.start()
		if back := w.talk(tt.data); back != tt.data {
			t.Errorf("%.40q: %d bytes came back of %d", tt.data, len(back), len(tt.data))
		}
		if f := w.reported(points.EgressConnect, 1)[0]; f.Egress.SNI != tt.want {
			t.Errorf("%.40q: the server name is %q, want %q", tt.data, f.Egress.SNI, tt.want)
		}
	}
}

func TestConnectionsEnd(t *testing.T) {
	lanetest.SkipShort(t)
	tests := []struct {
		name   string
		d      proposal.EgressDecision
		limits Limits
		text   string
		cut    bool
		code   string
	}{
		{"says nothing", allow, Limits{Hello: 30 * time.Millisecond}, "", false, "limit"},
		{"half a hello", allow, Limits{Hello: 30 * time.Millisecond}, "\x16\x03\x01\x02\x00", false, "limit"},
		{"idle", raw, Limits{Idle: 50 * time.Millisecond}, "x", false, "idle"},
		{"idle request", allow, Limits{Idle: 50 * time.Millisecond}, "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 9\r\n\r\nx", false, "idle"},
		{"too long", raw, Limits{Total: 50 * time.Millisecond}, "x", false, "timeout"},
		{"cut", raw, Limits{}, "x", true, "cut"},
		{"cut in a request", allow, Limits{}, "POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 9\r\n\r\nx", true, "cut"},
		{"another protocol", allow, Limits{}, "\x00\x00\x00\x08\x04\xd2\x16\x2f", false, "protocol"},
		{"another protocol, intercepted", intercept, Limits{}, "ssh-2.0", false, "protocol"},
		{"not allowed", proposal.EgressDecision{Raw: true}, Limits{}, "x", false, "policy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 443, test.d)
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			w.tcp(func(c net.Conn) {
				if test.cut {
					c.Read(make([]byte, 1))
					cancel()
				}
				io.Copy(io.Discard, c)
			})
			w.options.Limits = test.limits
			w.ctx = ctx
			c, err := net.Dial("tcp", w.start())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, test.text)
			c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection stays open")
			}
			if f := w.reported(points.EgressConnect, 1)[0]; f.Code != test.code || f.Decision.Reason == nil {
				t.Errorf("reported %+v, want code %q", f, test.code)
			}
		})
	}
}

func TestBudgetOfRaw(t *testing.T) {
	w := newWorld(t, 22, raw)
	w.connect.Most = 100 << 10
	arrived := make(chan int64, 1)
	w.tcp(func(c net.Conn) { n, _ := io.Copy(io.Discard, c); arrived <- n })
	w.start()
	w.talk(strings.Repeat("x", 1<<20))
	if n := <-arrived; n > 100<<10 {
		t.Errorf("%d bytes left", n)
	}
	if f := w.reported(points.EgressConnect, 1)[0]; f.Code != "limit" {
		t.Errorf("reported %+v", f)
	}
}

// Requests to a hundred names together send no more than one run may.
func TestBudgetOfRun(t *testing.T) {
	w := newWorld(t, 22, raw)
	w.options.Limits.Run = 100 << 10
	arrived := make(chan int64, 2)
	w.tcp(func(c net.Conn) { n, _ := io.Copy(io.Discard, c); arrived <- n })
	w.start()
	w.talk(strings.Repeat("x", 60<<10))
	w.talk(strings.Repeat("x", 60<<10))
	if n := <-arrived + <-arrived; n > 100<<10 || n < 60<<10 {
		t.Errorf("%d bytes left", n)
	}
	if f := w.reported(points.EgressConnect, 2); (f[0].Code == "limit") == (f[1].Code == "limit") {
		t.Errorf("reported %+v, want one that met the limit", f)
	}
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t, 443, intercept)
	l := listen(t)
	w.server, w.noUp = l.Addr().String(), true
	l.Close()
	w.start()
	res, body := get(t, w.client(true), "https://allowed.example/")
	if res.StatusCode != 502 || !strings.Contains(body, "cannot reach allowed.example") {
		t.Errorf("gave %d %q", res.StatusCode, body)
	}
}

func TestFilter(t *testing.T) {
	const secret = "AKIAhorse"
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.URL.RawQuery+"|"+r.Header.Get("X-Key")+"|"+string(body))
	})
	for _, effect := range []string{"redact", "deny"} {
		for _, way := range ways {
			t.Run(effect+", "+way.name, func(t *testing.T) {
				w := newWorld(t, way.port, way.d)
				w.connect.Filter = true
				w.options.Scan = func(u string, h http.Header, body []byte) (found []proposal.EgressSecret) {
					for where, text := range map[string]string{"url": u, "header": h.Get("X-Key"), "body": string(body)} {
						if strings.Contains(text, secret) {
							found = append(found, proposal.EgressSecret{Rule: "key", Where: where})
						}
					}
					return found
				}
				w.options.Redact = func(u string, h http.Header, body []byte) (string, http.Header, []byte) {
					h = h.Clone()
					h.Set("X-Key", "gone")
					return strings.ReplaceAll(u, secret, "gone"), h, bytes.ReplaceAll(body, []byte(secret), []byte("gone"))
				}
				w.policy = func(e proposal.Egress) proposal.EgressDecision {
					if len(e.Secrets) == 3 && effect == "redact" {
						return proposal.EgressDecision{Effect: proposal.Allow, Redact: true}
					}
					return deny
				}
				if way.scheme == "http" {
					w.http(server)
				} else {
					w.https(server)
				}
				w.start()
				rest := strings.Repeat("y", 100<<10)
				r, _ := http.NewRequest("POST", way.scheme+"://allowed.example/?k="+secret, strings.NewReader(secret+rest))
				r.Header.Set("X-Key", secret)
				res, err := w.client(way.h2).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				if effect == "redact" && string(body) != "k=gone|gone|gone"+rest || effect == "deny" && res.StatusCode != 403 {
					t.Errorf("gave %d, %.80q", res.StatusCode, body)
				}
			})
		}
	}
}

func TestFilterWithoutScannerRefuses(t *testing.T) {
	w := newWorld(t, 80, allow)
	w.connect.Filter = true
	w.http(http.NotFoundHandler())
	w.start()
	if res, body := get(t, w.client(false), "http://allowed.example/"); res.StatusCode != 403 {
		t.Errorf("gave %d %q", res.StatusCode, body)
	}
}

func poolOf(ca *CA) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

func BenchmarkRaw(b *testing.B) {
	w := &world{name: "x.example", port: 9, connect: raw, ctx: context.Background()}
	up := listen(b)
	go func() {
		c, _ := up.Accept()
		io.Copy(io.Discard, c)
	}()
	r, _ := New(Options{Ask: func(context.Context, proposal.Egress) (proposal.EgressDecision, error) { return allow, nil },
		Report: func(proposal.Flow) {}, Roots: poolOf(serverCA)})
	w.server = up.Addr().String()
	l := listen(b)
	go func() {
		c, _ := l.Accept()
		r.Serve(w.ctx, c, w.target(), w.connect)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	chunk := make([]byte, 1<<20)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		c.Write(chunk)
	}
}

// What is forwarded at once is one frame to the sandbox, with headers of IPv6 and TCP's
// timestamps, and uses most of it.
func TestBufferIsOneFrame(t *testing.T) {
	const room = segment.MTU - 40 - 32
	if bigBuffer > room || bigBuffer < room*9/10 {
		t.Errorf("a buffer of %d bytes, and a frame has room for %d", bigBuffer, room)
	}
}
