// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	sha       = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	testToken = "ghs_canary"
)

// A step responds to one request.
type step func(w http.ResponseWriter, r *http.Request)

// A script is a server that answers by its steps, one per request; the last one repeats.
type script struct {
	*httptest.Server
	t     *testing.T
	steps []step

	mu   sync.Mutex
	seen []*http.Request
	sent []string // the bodies of seen
}

func play(t *testing.T, steps ...step) *script {
	t.Helper()
	s := &script{t: t, steps: steps}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.seen)
	s.seen, s.sent = append(s.seen, r), append(s.sent, string(body))
	s.mu.Unlock()
	s.steps[min(n, len(s.steps)-1)](w, r)
}

func (s *script) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *script) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// A clock advances only when Sleep is called.
type clock struct {
	at     time.Time
	sleeps []time.Duration
}

func (c *clock) now() time.Time { return c.at }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.sleeps = append(c.sleeps, d)
	c.at = c.at.Add(d)
	return ctx.Err()
}

var testTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// client connects to url without reusing connections, so that net/http does not
// retry by itself.
func client(t *testing.T, url string, change ...func(*Options)) (*Client, *clock) {
	t.Helper()
	k := &clock{at: testTime}
	o := Options{
		BaseURL: url, Token: testToken, Repository: "Codertocat/Hello-World",
		Transport: &http.Transport{DisableKeepAlives: true}, Sleep: k.sleep, Now: k.now,
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// say responds with a status, a body and headers in pairs.
func say(status int, body string, header ...string) step {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", testTime.Format(http.TimeFormat))
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

// cutOff announces a longer body than it sends.
func cutOff(status int, body string) step {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+100))
		w.WriteHeader(status)
		io.WriteString(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func commentJSON(id int64) string {
	return fmt.Sprintf(`{"id":%d,"body":"b","user":{"login":"octocat","id":1,"type":"User"}}`, id)
}

// wantError checks that err is a StopError with code and an Error of kind.
func wantError(t *testing.T, err error, kind Kind, code string) (*Error, *proposal.StopError) {
	t.Helper()
	var e *Error
	var stop *proposal.StopError
	if !errors.As(err, &e) || !errors.As(err, &stop) {
		t.Fatalf("got %v (%T), want a StopError and an Error", err, err)
	}
	if e.Kind != kind || stop.Code != code {
		t.Fatalf("got kind %q, code %q, want %q, %q: %v", e.Kind, stop.Code, kind, code, err)
	}
	return e, stop
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}
