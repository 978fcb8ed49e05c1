// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// h2Frame is one HTTP/2 frame.
func h2Frame(kind, flags byte, stream uint32, payload string) string {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// fields are names and values, in HPACK without compression.
func fields(pairs ...string) string {
	var b strings.Builder
	for i, text := range pairs {
		if i%2 == 0 {
			b.WriteByte(0)
		}
		n := len(text)
		if n < 127 {
			b.WriteByte(byte(n))
		} else {
			b.WriteByte(127)
			for n -= 127; n >= 128; n >>= 7 {
				b.WriteByte(byte(n&127 | 128))
			}
			b.WriteByte(byte(n))
		}
		b.WriteString(text)
	}
	return b.String()
}

var plainRequest = []string{":method", "GET", ":scheme", "https", ":authority", "allowed.example", ":path", "/"}

func h2Request(stream uint32, more ...string) string {
	return h2Frame(frameHeaders, 4|flagEndStream, stream, fields(slices.Concat(plainRequest, more)...))
}

// talk2 sends HTTP/2 and reads until the connection ends, or a PING was answered and as many
// answers have come.
func (w *world) talk2(text string, answers int) {
	w.t.Helper()
	c, err := tls.Dial("tcp", w.gate, &tls.Config{RootCAs: w.trust(), ServerName: w.name, NextProtos: []string{"h2"}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, text+h2Frame(6, 0, 0, "01234567"))
	head := make([]byte, frameHead)
	for ponged := false; !ponged || answers > 0; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return
		}
		ponged = ponged || head[3] == 6
		if head[3] == frameHeaders {
			answers--
		}
	}
}

// What Go's server refuses by itself has a record, one for each connection.
func TestMalformedHTTP2(t *testing.T) {
	lanetest.SkipShort(t)
	start := preface + h2Frame(4, 0, 0, "")
	long := func(n int) string {
		return strings.Repeat(h2Frame(9, 0, 1, fields("x", strings.Repeat("x", 16000))), n)
	}
	huge := fields(append(slices.Clone(plainRequest), "x", strings.Repeat("x", 16000))...)
	many := start + h2Request(1)
	for i := range uint32(20) {
		many += h2Request(3+2*i, "Upper", "x")
	}
	type connection struct {
		text    string
		answers int
		want    string
	}
	try := func(t *testing.T, name string, test connection) {
		w := newWorld(t, 443, intercept)
		var served atomic.Int64
		w.https(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
		w.start()
		w.talk2(test.text, test.answers)
		w.reported(points.EgressConnect, 1)
		w.mu.Lock()
		defer w.mu.Unlock()
		var whys []string
		for _, f := range w.flows {
			if f.Egress.Kind == points.EgressRequest && f.Code == "protocol" && f.Refused() && f.Egress.Method == "" {
				whys = append(whys, f.Decision.Reason.Message)
			}
		}
		if got := strings.Join(whys, "\n"); (test.want == "") != (got == "") || !strings.HasSuffix(got, test.want) {
			t.Errorf("reported %q, want %q", got, test.want)
		}
		if good := strings.Contains(name, "good"); good != (served.Load() > 0) {
			t.Errorf("%d requests were served", served.Load())
		}
	}
	var ended sync.WaitGroup // Go's server closes a connection that it ends a second later
	for name, test := range map[string]connection{
		"good":               {start + h2Request(1) + h2Request(3), 2, ""},
		"upper case":         {start + h2Request(1, "Upper", "x"), 0, "1 requests were refused unread"},
		"line end":           {start + h2Request(1, "x", "a\r\nb"), 0, "1 requests were refused unread"},
		"two paths":          {start + h2Request(1, ":path", "/x"), 0, "1 requests were refused unread"},
		"no path":            {start + h2Frame(frameHeaders, 5, 1, fields(plainRequest[:6]...)), 0, "1 requests were refused unread"},
		"extended CONNECT":   {start + h2Frame(frameHeaders, 5, 1, fields(":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/", ":authority", "allowed.example")), 0, "1 requests were refused unread"},
		"connection":         {start + h2Request(1, "connection", "close"), 1, "1 requests were refused unread"},
		"too long":           {start + h2Frame(frameHeaders, 1, 1, huge) + long(3) + h2Frame(9, 4, 1, fields("x", strings.Repeat("x", 2200))), 1, "1 requests were refused unread"},
		"much too long":      {start + h2Frame(frameHeaders, 1, 1, huge) + long(6) + h2Frame(9, 4, 1, ""), 1, "was ended"},
		"one good, many bad": {many, 1, "20 requests were refused unread"},
		"compression":        {start + h2Frame(frameHeaders, 5, 1, "\xff\xff\xff\xff\xff\xff"), 0, "was ended"},
		"data on stream 0":   {start + h2Frame(frameData, 0, 0, "x"), 0, "was ended"},
		"no settings":        {preface + h2Request(1), 0, "was ended"},
		"HTTP/1":             {"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n", 0, "does not begin as HTTP/2 does"},
	} {
		if test.want == "was ended" {
			ended.Go(func() { t.Run(name, func(t *testing.T) { try(t, name, test) }) })
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, name, test)
		})
	}
	ended.Wait()
}

// Answers that break off, and requests that programs give up, are no malformed HTTP/2.
func TestBrokenHTTP2(t *testing.T) {
	w := newWorld(t, 443, intercept)
	w.https(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, strings.Repeat("x", 100<<10))
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	}))
	w.start()
	c := w.client(true)
	for _, path := range []string{"/cut", "/given-up", "/"} {
		res, err := c.Get("https://allowed.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if path == "/" {
			io.Copy(io.Discard, res.Body)
		}
		res.Body.Close()
	}
	c.CloseIdleConnections()
	w.reported(points.EgressConnect, 1)
	for _, f := range w.reported(points.EgressRequest, 3) {
		if f.Egress.Method == "" || f.Code == "protocol" {
			t.Errorf("reported %+v", f)
		}
	}
}

// However the server's bytes are split, the same is seen.
func TestFramesInPieces(t *testing.T) {
	text := h2Frame(4, 0, 0, "123456") + h2Frame(frameHeaders, 4, 1, "x") + h2Frame(frameData, 0, 1, strings.Repeat("x", 1000)) + h2Frame(frameHeaders, 5, 1, "trailer") +
		h2Frame(frameReset, 0, 3, "\x00\x00\x00\x01") + h2Frame(frameReset, 0, 5, "\x00\x00\x00\x08") + h2Frame(frameReset, 0, 7, "\x00\x00\x00\x05") + h2Frame(frameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00debug")
	for size := 1; size <= len(text); size++ {
		f := newFrames(nil)
		for piece := range slices.Chunk([]byte(text), size) {
			f.scanFrames(piece)
		}
		if f.answers != 1 || f.resets != 1 || f.ended || len(f.open) != 0 || f.skip != 0 || len(f.part) != 0 {
			t.Fatalf("in pieces of %d: %d answers, %d resets, %v, %d open", size, f.answers, f.resets, f.ended, len(f.open))
		}
	}
}
