// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const socketRequest = "GET /socket HTTP/1.1\r\nHost: allowed.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: token-placeholder\r\n\r\n"

// sockets allows WebSockets on one path.
func sockets(e proposal.Egress) proposal.EgressDecision {
	d := allow
	d.Raw = e.Kind == points.EgressRequest && e.Method == "GET" && e.Path == "/socket"
	return d
}

// socketServer agrees to each upgrade, with head, and then echoes.
func socketServer(head string, got chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header)
		if head == "" {
			io.WriteString(w, "no socket here")
			return
		}
		conn, buffers, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, strings.ReplaceAll(head, "TOKEN", r.Header.Get("Authorization")))
		io.Copy(conn, buffers)
	})
}

const agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Echo: TOKEN\r\n\r\n"

// openSocket returns a connection on which text was sent, and the answer to it.
func (w *world) openSocket(text string) (net.Conn, *bufio.Reader, *http.Response) {
	w.t.Helper()
	var c net.Conn
	var err error
	if w.port == 443 {
		c, err = tls.Dial("tcp", w.gate, &tls.Config{RootCAs: w.trust(), ServerName: w.name, NextProtos: []string{"http/1.1"}})
	} else {
		c, err = net.Dial("tcp", w.gate)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, text)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		return c, r, nil
	}
	return c, r, res
}

// newSockets is a world with a server of WebSockets.
func newSockets(t *testing.T, port int, head string) (*world, chan string) {
	d := allow
	d.Intercept = port == 443
	w := newWorld(t, port, d)
	w.policy = sockets
	got := make(chan string, 10)
	if port == 443 {
		w.https(socketServer(head, got))
	} else {
		w.http(socketServer(head, got))
	}
	return w, got
}

func TestWebSocket(t *testing.T) {
	for _, port := range []int{443, 80} {
		t.Run(fmt.Sprint(port), func(t *testing.T) {
			w, got := newSockets(t, port, agreed)
			w.start()
			c, r, res := w.openSocket(socketRequest)
			if res == nil || res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" {
				t.Fatalf("%+v", res)
			}
			if head := <-got; !strings.HasPrefix(head, "GET /socket ") || !strings.Contains(head, "Sec-Websocket-Key:[AAAAAAAAAAAAAAAAAAAAAA==]") {
				t.Errorf("the server got %s", head)
			}
			// Neither HTTP nor anything else: it is only forwarded.
			message := strings.Repeat("GET /X HTTP/1.1\r\n\r\n\x00\xff", 10000)
			go io.WriteString(c, message)
			back := make([]byte, len(message))
			if _, err := io.ReadFull(r, back); err != nil || string(back) != message {
				t.Fatalf("%v", err)
			}
			c.Close()
			f := w.reported(points.EgressRequest, 1)[0]
			if f.Status != 101 || f.Code != "" || f.Sent < int64(len(message)) || f.Received < int64(len(message)) || f.Egress.Path != "/socket" {
				t.Errorf("reported %+v", f)
			}
			if f := w.reported(points.EgressConnect, 1)[0]; f.Sent < int64(len(message)) || f.Received < int64(len(message)) || len(w.questions(points.EgressRequest)) != 1 {
				t.Errorf("reported %+v, asked %+v", f, w.questions(points.EgressRequest))
			}
		})
	}
}

// Without the policy's consent, and in an answer that is not an agreement, nothing but HTTP passes.
func TestWebSocketRefused(t *testing.T) {
	lanetest.SkipShort(t)
	for name, test := range map[string]struct {
		text, head string
		status     int
		code       string
		served     bool
	}{
		"policy":            {strings.Replace(socketRequest, "/socket", "/other", 1), agreed, 403, "upgrade", false},
		"server":            {socketRequest, "", 200, "", true},
		"another protocol":  {socketRequest, strings.Replace(agreed, "websocket", "other", 1), 502, "unreachable", true},
		"no protocol":       {socketRequest, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502, "unreachable", true},
		"unasked":           {"GET /socket HTTP/1.1\r\nHost: allowed.example\r\n\r\n", agreed, 502, "unreachable", true},
		"h2c, unasked":      {"GET /socket HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", agreed, 502, "unreachable", true},
		"early":             {socketRequest + "early data", agreed, 0, "protocol", true},
		"early, a request":  {socketRequest + "GET /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", agreed, 0, "protocol", true},
		"early, malformed":  {socketRequest + "GET\r\n\r\n", agreed, 0, "protocol", true},
		"raw, but denied":   {strings.Replace(socketRequest, "/socket", "/denied", 1), agreed, 403, "policy", false},
		"raw for the other": {strings.Replace(socketRequest, "/socket", "/socket/x", 1), agreed, 403, "upgrade", false},
	} {
		for _, port := range []int{443, 80} {
			t.Run(fmt.Sprint(name, " ", port), func(t *testing.T) {
				w, got := newSockets(t, port, test.head)
				w.policy = func(e proposal.Egress) proposal.EgressDecision {
					if e.Path == "/denied" {
						d := deny
						d.Raw = true
						return d
					}
					return sockets(e)
				}
				w.start()
				c, _, res := w.openSocket(test.text)
				status := 0
				if res != nil {
					status = res.StatusCode
				}
				c.Close()
				f := w.reported(points.EgressRequest, 1)[0]
				if status != test.status || f.Code != test.code {
					t.Errorf("status %d, reported %+v %+v", status, f, f.Decision.Reason)
				}
				w.reported(points.EgressConnect, 1)
				if served := len(got); served > 1 || (served == 1) != test.served {
					t.Errorf("%d requests were served", served)
				}
			})
		}
	}
}

// A WebSocket ends with its command, its budget and its silence.
func TestWebSocketEnds(t *testing.T) {
	lanetest.SkipShort(t)
	for _, name := range []string{"command", "budget", "silence"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newSockets(t, 443, agreed)
			if name == "budget" {
				w.policy = func(e proposal.Egress) proposal.EgressDecision {
					d := sockets(e)
					d.Most = 4 * proposal.KiB
					return d
				}
			}
			if name == "silence" {
				w.options.Limits.Idle = 300 * time.Millisecond
			}
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			w.ctx = ctx
			w.start()
			c, r, res := w.openSocket(socketRequest)
			if res == nil || res.StatusCode != 101 {
				t.Fatalf("%+v", res)
			}
			switch name {
			case "command":
				cancel()
			case "budget":
				go io.WriteString(c, strings.Repeat("x", 64<<10))
			}
			if n, _ := io.Copy(io.Discard, r); n > 4<<10 {
				t.Errorf("%d bytes came back", n)
			}
			want := map[string]string{"command": "cut", "budget": "limit", "silence": "idle"}[name]
			if f := w.reported(points.EgressConnect, 1)[0]; f.Code != want || f.Sent > 4<<10 {
				t.Errorf("reported %+v, want %s", f, want)
			}
			w.reported(points.EgressRequest, 1)
		})
	}
}

// The credential that was put on the request comes back neither in the head nor in a message.
func TestWebSocketCredential(t *testing.T) {
	w, got := newSockets(t, 443, agreed+"TOKEN and ")
	w.options.Credentials = []Credential{{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Placeholder: "token-placeholder", Value: value}}
	w.start()
	c, r, res := w.openSocket(socketRequest)
	if res == nil || res.StatusCode != 101 {
		t.Fatalf("%+v", res)
	}
	if head := <-got; !strings.Contains(head, value) || strings.Contains(head, "deflate") {
		t.Errorf("the server got %s", head)
	}
	io.WriteString(c, "more")
	c.(*tls.Conn).CloseWrite()
	back, _ := io.ReadAll(r)
	if !strings.HasSuffix(string(back), " and more") {
		t.Errorf("read %q", back)
	}
	shows(t, "the answer", fmt.Sprint(res.Header)+string(back))
}
