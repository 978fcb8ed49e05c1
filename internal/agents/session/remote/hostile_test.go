// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const sessionID = "20260102-030405-0123456789ab"

// hostile starts a server that opens a session and answers other requests with the handlers, and
// returns a client with small bounds.
func hostile(t *testing.T, handlers map[string]http.HandlerFunc) *Client {
	t.Helper()
	a := certtest.NewAuthority(t)
	routes := http.NewServeMux()
	for pattern, h := range map[string]http.HandlerFunc{
		"POST /session": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"id": %q, "token": "t"}`, sessionID) },
		"GET /session/events": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "{\"alive\": true}\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		},
	} {
		if handlers[pattern] == nil {
			routes.HandleFunc(pattern, h)
		}
	}
	for pattern, h := range handlers {
		routes.HandleFunc(pattern, h)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: routes, ErrorLog: log.New(io.Discard, "", 0)}
	secure := &tls.Config{Certificates: []tls.Certificate{a.NewLeaf(t, "node")}, ClientCAs: a.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	go func() { _ = server.Serve(tls.NewListener(l, secure)) }()
	t.Cleanup(func() { server.Close() })
	c, err := New(ClientOptions{Address: l.Addr().String(), Logs: t.TempDir(), Artifacts: t.TempDir(),
		TLS: &tls.Config{Certificates: []tls.Certificate{a.NewLeaf(t, "serve")}, RootCAs: a.Pool, ServerName: "node"}})
	if err != nil {
		t.Fatal(err)
	}
	c.bounds = answerLimits{line: 64 << 10, document: 64 << 10, report: 64 << 10, values: 1000, output: 1 << 20, log: 64 << 10, silence: time.Second, retry: 10 * time.Millisecond, patience: time.Second, lastCalls: time.Second}
	return c
}

func codeOf(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// endless writes s until the client has gone.
func endless(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, s); err != nil {
				return
			}
		}
	}
}

// No answer to a proposal takes a client down, or passes as a Record.
func TestHostileAnswers(t *testing.T) {
	for what, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"endless output":         {endless(`{"output": {"Stream": "stdout", "Data": "eHh4"}}` + "\n"), "session.answer"},
		"endless small events":   {endless("{\"id\":\"c1\"}\n"), "session.answer"},
		"a line without an end":  {endless("x"), "session.answer"},
		"a line of blanks":       {endless(" "), "session.answer"},
		"no JSON":                {text("x\n"), "session.answer"},
		"no event":               {text("{}\n"), "session.answer"},
		"two things":             {text(`{"ended": true, "alive": true}` + "\n"), "session.answer"},
		"an event of a session":  {text(`{"alive": true}` + "\n"), "session.answer"},
		"nothing":                {text(""), "session.lost"},
		"half an event":          {text(`{"record": {`), "session.lost"},
		"the end":                {text(`{"ended": true}` + "\n"), "session.answer"},
		"another proposal":       {text(`{"record": {"proposal": {"id": "other"}}}` + "\n"), "session.answer"},
		"many values":            {text(`{"record": {"proposal": {"id": "p", "needs": [` + strings.Repeat(`"",`, 2000) + `""]}}}` + "\n"), "session.answer"},
		"an output of no stream": {text(`{"output": {"Stream": "x", "Data": "eHh4"}}` + "\n"), "session.answer"},
		"an error without code":  {text(`{"error": {"code": "A b", "message": "x"}}` + "\n"), "session.answer"},
		"its own error":          {text(`{"error": {"code": "some.code", "message": "x"}}` + "\n"), "some.code"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		}, "session.answer"},
		"a large refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			endless("x")(w, nil)
		}, "session.answer"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := hostile(t, map[string]http.HandlerFunc{"POST /proposals": test.answer})
			s, err := c.Open(t.Context(), gate.SessionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ctx := gate.WithOutput(t.Context(), func(proposal.Chunk) {})
			if r, err := s.Do(ctx, proposal.Proposal{ID: "p", Run: "true"}); codeOf(err) != test.want {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// A session's ID becomes the name of a file here.
func TestHostileID(t *testing.T) {
	for _, id := range []string{"", "../../x", "/etc/passwd", sessionID + "/..", sessionID + "\x00"} {
		answer, err := json.Marshal(openAnswer{ID: id, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := hostile(t, map[string]http.HandlerFunc{"POST /session": text(string(answer))}).Open(t.Context(), gate.SessionOptions{}); codeOf(err) != "session.answer" {
			t.Errorf("%q: %v, %v", id, s, err)
		}
	}
}

// Only a log that is complete, and of this session, is one.
func TestHostileLog(t *testing.T) {
	of := func(p partHeader, data string) string {
		line, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n" + data
	}
	report := func(id string) *proposal.Report {
		return &proposal.Report{Run: proposal.Run{ID: id}, Audit: &proposal.Audit{Key: "k", Checkpoint: "c", File: "/etc/passwd"}}
	}
	for what, test := range map[string]struct{ answer, want string }{
		"no log":             {of(partHeader{Report: &proposal.Report{Run: proposal.Run{ID: sessionID}}}, ""), "session.log"},
		"no report":          {of(partHeader{}, ""), "session.answer"},
		"another session":    {of(partHeader{Report: report("20260102-030405-ba9876543210")}, ""), "session.answer"},
		"nonsense":           {of(partHeader{Report: report(sessionID), Size: 8}, "nonsense"), "session.log"},
		"cut":                {of(partHeader{Report: report(sessionID), Size: 800}, "nonsense"), "session.log"},
		"too large":          {of(partHeader{Report: report(sessionID), Size: 1 << 40}, ""), "session.answer"},
		"of a negative size": {of(partHeader{Report: report(sessionID), Size: -1}, ""), "session.answer"},
	} {
		c := hostile(t, map[string]http.HandlerFunc{"POST /session/close": text(test.answer)})
		s, err := c.Open(t.Context(), gate.SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Close()
		if codeOf(err) != test.want || r.Run.ID != sessionID {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if r.Audit != nil && r.Audit.File != filepath.Join(c.o.Logs, sessionID+".jsonl") {
			t.Errorf("%s: the report names %q", what, r.Audit.File)
		}
	}
}

// A file that an answer names is fetched from the server, and never read here.
func TestHostilePaths(t *testing.T) {
	c := hostile(t, map[string]http.HandlerFunc{
		"POST /proposals": text(`{"record": {"proposal": {"id": "p"}, "result": {"stdout": {"truncated": true, "file": "/etc/passwd"}, "outputs": [{"path": "x", "file": "/etc/passwd"}]}}}` + "\n"),
		"POST /diff":      text(`{"files": [{"path": "x", "old": {"file": "/etc/passwd"}}], "patch": {"file": "../../etc/passwd"}}`),
		"GET /artifact":   text("{\"size\": 2}\nhi"),
	})
	s, err := c.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Do(t.Context(), proposal.Proposal{ID: "p", Run: "true"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Diff(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{r.Result.Stdout.File, d.Patch.File} {
		data, err := os.ReadFile(path)
		if filepath.Dir(path) != c.o.Artifacts || string(data) != "hi" {
			t.Errorf("%q has %q, %v", path, data, err)
		}
	}
	if r.Result.Outputs[0].File != "" || d.Files[0].Old.File != "" {
		t.Errorf("%+v, %+v", r.Result.Outputs, d.Files[0].Old)
	}
}

// A server that is silent, or says too much, is lost.
func TestSilence(t *testing.T) {
	lanetest.SkipShort(t)
	for what, answer := range map[string]http.HandlerFunc{
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"noise":   endless("{\"alive\": true}\n"),
		"refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	} {
		c := hostile(t, map[string]http.HandlerFunc{"GET /session/events": answer, "POST /proposals": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
		c.bounds.silence = 20 * time.Millisecond // each of these servers is lost
		s, err := c.Open(t.Context(), gate.SessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Do(ctx, proposal.Proposal{ID: "p", Run: "true"}); err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v", what, err)
		}
		select {
		case <-s.Done():
		case <-ctx.Done():
			t.Errorf("%s: the client waits", what)
		}
		if _, err := s.Close(); err == nil {
			t.Errorf("%s: closed", what)
		}
	}
}

// FuzzEvent reads what a server sends.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{"{}\n", `{"id": "c1"}` + "\n", `{"output": {"Stream": "stdout", "Data": "eHh4"}}` + "\n{", `{"record": {"proposal": {"id": "p"}}}` + "\n", `{"error": {"code": "a.b"}}` + "\n", "[[[[[[\n", "\"\\\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := (&Client{lost: lostError}).newReader(bytes.NewReader(data), 1<<10, 1<<12)
		for n := 0; ; n++ {
			e, err := r.readEvent(100)
			if err != nil {
				if c := codeOf(err); c != "session.answer" && c != "session.lost" {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if n > 1<<12/minEvent {
				t.Fatal("events have no end")
			}
			if checkEvent(e) != nil {
				t.Errorf("passed %+v", e)
			}
		}
	})
}

// Requests that are not what they must be are refused before they have an effect.
func TestRequests(t *testing.T) {
	lanetest.SkipShort(t)
	s := &server{} // no request reaches the session
	for _, body := range []string{"", "x", `{"proposal":{}}{"proposal":{}}`, `{"proposal":{"run":"true","rum":"x"}}`, `{"proposal":{"run":"` + strings.Repeat("x", MaxDocument) + `"}}`} {
		err := s.handlePropose(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/proposals", strings.NewReader(body)), nil)
		if codeOf(err) != "session.request" {
			t.Errorf("%.30q: %v", body, err)
		}
	}
	large := httptest.NewRequest(http.MethodPut, "/file?path=x", strings.NewReader(strings.Repeat("x", MaxFile+1)))
	if err := s.handlePut(httptest.NewRecorder(), large, nil); codeOf(err) != "session.request" || !strings.Contains(proposal.FailureOf(err).Hint, "at most 32 MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
	w := httptest.NewRecorder()
	if err := s.handleEnd(w, httptest.NewRequest(http.MethodPost, "/running/c1/end", nil), nil); err != nil || w.Code != http.StatusUnprocessableEntity {
		t.Errorf("the end of nothing: %v, %d", err, w.Code)
	}
}
