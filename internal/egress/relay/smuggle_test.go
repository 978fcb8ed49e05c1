// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
)

// smuggles are streams of bytes after which a server must have seen exactly the
// requests in seen. X marks what must never be served.
var smuggles = []struct {
	name, text string
	seen       []string
}{
	{"plain", "GET /a HTTP/1.1\r\nHost: allowed.example\r\n\r\n", []string{"GET /a"}},
	{"two in a row", "GET /a HTTP/1.1\r\nHost: allowed.example\r\n\r\nGET /b HTTP/1.1\r\nHost: allowed.example\r\n\r\n", []string{"GET /a", "GET /b"}},
	{"chunked, then another", "POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: allowed.example\r\n\r\n", []string{"POST /a", "GET /b"}},
	{"chunked with a trailer", "POST /a HTTP/1.1\r\nHost: allowed.example\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", []string{"POST /a"}},
	{"HTTP/1.0", "GET /a HTTP/1.0\r\nHost: allowed.example\r\n\r\n", []string{"GET /a"}},
	{"h2c is only proposed", "GET /a HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", []string{"GET /a"}},

	{"length and chunks", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"chunks and length", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", nil},
	{"two lengths", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", nil},
	{"the same length twice", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", nil},
	{"a list of lengths", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1, 1\r\n\r\na", nil},
	{"length with a plus", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: +1\r\n\r\na", nil},
	{"length with a zero", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 01\r\n\r\na", nil},
	{"negative length", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: -1\r\n\r\na", nil},
	{"empty length", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length:\r\n\r\na", nil},
	{"length in hex", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 0x1\r\n\r\na", nil},
	{"huge length", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 18446744073709551617\r\n\r\na", nil},
	{"two codings", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", nil},
	{"gzip, chunked", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", nil},
	{"identity", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: identity\r\n\r\n", nil},
	{"xchunked", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", nil},
	{"coding with a vertical tab", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", nil},
	{"space before the colon", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", nil},
	{"folded line", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", nil},
	{"chunks of HTTP/1.0", "POST /X HTTP/1.0\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil},
	{"bare line feeds", "GET /X HTTP/1.1\nHost: allowed.example\n\n", nil},
	{"one bare line feed", "GET /X HTTP/1.1\r\nHost: allowed.example\nX: y\r\n\r\n", nil},
	{"bare carriage return", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nX: a\rGET /X HTTP/1.1\r\n\r\n", nil},
	{"NUL in a header", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nX: a\x00b\r\n\r\n", nil},
	{"no host", "GET /X HTTP/1.1\r\n\r\n", nil},
	{"two hosts", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n", nil},
	{"the same host twice", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nHost: allowed.example\r\n\r\n", nil},
	{"host with a path", "GET /X HTTP/1.1\r\nHost: allowed.example/x\r\n\r\n", nil},
	{"host with a user", "GET /X HTTP/1.1\r\nHost: other@allowed.example\r\n\r\n", nil},
	{"two spaces", "GET  /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"tab in the first line", "GET\t/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"no version", "GET /X\r\nHost: allowed.example\r\n\r\n", nil},
	{"another version", "GET /X HTTP/1.2\r\nHost: allowed.example\r\n\r\n", nil},
	{"HTTP/2 in clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", nil},
	{"empty line between", "GET /a HTTP/1.1\r\nHost: allowed.example\r\n\r\n\r\nGET /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", []string{"GET /a"}},
	{"absolute form", "GET http://allowed.example/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"absolute form of another", "GET http://other.example/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"CONNECT", "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n", nil},
	{"CONNECT to the name", "CONNECT allowed.example:443 HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"TRACE", "TRACE /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"WebSocket without its key", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n", nil},
	{"WebSocket of another version", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 8\r\n\r\n", nil},
	{"WebSocket with a body", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nContent-Length: 1\r\n\r\nx", nil},
	{"WebSocket by POST", "POST /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", nil},
	{"WebSocket of HTTP/1.0", "GET /X HTTP/1.0\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", nil},
	{"WebSocket without the connection's consent", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", nil},
	{"another protocol", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n", nil},
	{"two protocols", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", nil},
	{"h2c and another", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n", nil},
	{"climbing path", "GET /a/../X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"climbing encoded", "GET /a/%2e%2E/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"climbing by an encoded slash", "GET /a%2f..%2fX HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"climbing with a parameter", "GET /a/..;/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"encoded twice", "GET /a/%252e%252e/X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"backslash", "GET /a/..\\X HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"encoded line end", "GET /a%0d%0aX HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"fragment", "GET /X#a HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"broken escape", "GET /X%zz HTTP/1.1\r\nHost: allowed.example\r\n\r\n", nil},
	{"long head", "GET /X HTTP/1.1\r\nHost: allowed.example\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", nil},
	{"a good one, then a bad one", "GET /a HTTP/1.1\r\nHost: allowed.example\r\n\r\nGET /X HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", []string{"GET /a"}},
	{"body that is a request", "POST /a HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 46\r\n\r\nGET /X HTTP/1.1\r\nHost: allowed.example\r\nA: b\r\n\r\n", []string{"POST /a"}},
}

// badChunks are bodies that break off a request: the server may see its head.
var badChunks = map[string]string{
	"extension":        "5;x=y\r\nhello\r\n0\r\n\r\n",
	"too long":         "5\r\nhelloo\r\n0\r\n\r\n",
	"bare line feed":   "5\nhello\n0\n\n",
	"size with 0x":     "0x5\r\nhello\r\n0\r\n\r\n",
	"size with a sign": "+5\r\nhello\r\n0\r\n\r\n",
	"size with spaces": "5 \r\nhello\r\n0\r\n\r\n",
	"huge size":        "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
	"many zeros":       strings.Repeat("0", 40) + "5\r\nhello\r\n0\r\n\r\n",
	"no size":          "\r\nhello\r\n0\r\n\r\n",
	"trailing length":  "5\r\nhello\r\n0\r\nContent-Length: 1\r\n\r\n",
	"trailing host":    "5\r\nhello\r\n0\r\nHost: other.example\r\n\r\n",
}

// A canary is a server that parses requests with net/http and records them.
type canary struct {
	mu   sync.Mutex
	seen []string
	done int // bodies that ended correctly
}

func (c *canary) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			if err != io.EOF && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "closed") {
				c.note("malformed: " + err.Error())
			}
			return
		}
		c.note(r.Method + " " + r.RequestURI)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		c.mu.Lock()
		c.done++
		c.mu.Unlock()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

func (c *canary) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, what)
}

// saw returns the requests seen, and how many of them had a whole body.
func (c *canary) saw() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.seen), c.done
}

func TestSmuggling(t *testing.T) {
	lanetest.SkipShort(t)
	for _, test := range smuggles {
		t.Run(test.name, func(t *testing.T) {
			w, c := newWorld(t, 80, allow), &canary{}
			w.tcp(c.serve)
			w.start()
			back := w.talk(test.text)
			flows := w.reported(points.EgressConnect, 1)
			if got, _ := c.saw(); got != fmt.Sprint(test.seen) {
				t.Errorf("the server saw %s, want %s", got, test.seen)
			}
			if len(w.questions(points.EgressRequest)) != len(test.seen) {
				t.Errorf("policy was asked %d times, want %d", len(w.questions(points.EgressRequest)), len(test.seen))
			}
			if strings.Contains(test.text, "X") && test.seen == nil {
				if !strings.Contains(back, "fumehood: refused") || !strings.Contains(back, "Fumehood-Refused: egress.") {
					t.Errorf("it was answered %q", back)
				}
				f := w.reported(points.EgressRequest, 1)[0]
				if f.Code != "protocol" || f.Decision.Reason == nil || f.Sent != 0 {
					t.Errorf("reported %+v", f)
				}
			}
			if flows[0].Code != "" {
				t.Errorf("the connection ended %q", flows[0].Code)
			}
		})
	}
}

func TestBadChunks(t *testing.T) {
	for name, body := range badChunks {
		t.Run(name, func(t *testing.T) {
			w, c := newWorld(t, 80, allow), &canary{}
			w.tcp(c.serve)
			w.start()
			w.talk("POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "GET /X HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
			f := w.reported(points.EgressRequest, 1)[0]
			w.reported(points.EgressConnect, 1)
			seen, whole := c.saw()
			if whole != 0 || f.Code != "protocol" || strings.Contains(seen, "X") {
				t.Errorf("the server saw %s, %d whole; reported %q %+v", seen, whole, f.Code, f.Decision.Reason)
			}
		})
	}
}

// A head may arrive byte by byte, and deadlines may expire in the middle of it.
func TestStrictKeepsWhatItHas(t *testing.T) {
	a, b := net.Pipe()
	over := make(chan struct{})
	close(over)
	s := newStrictReader(b, over)
	text := "POST /a HTTP/1.1\r\nHost: allowed.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	go func() {
		for i := range len(text) {
			a.Write([]byte{text[i]})
		}
		a.Close()
	}()
	got, err := io.ReadAll(s)
	if string(got) != text || err != nil || s.malformedReason() != "" {
		t.Errorf("read %q, %v, %q", got, err, s.malformedReason())
	}
}
