// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func code(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}

func shell(id, text string) proposal.Proposal { return proposal.Proposal{ID: id, Run: text} }

// Who has no certificate of the right authority, with the right name, gets nowhere.
func TestStrangers(t *testing.T) {
	lanetest.SkipShort(t)
	n := newNode(t)
	other := certtest.NewAuthority(t)
	foreign := client(t, other, "serve")
	foreign.RootCAs = n.Pool
	for what, config := range map[string]*tls.Config{"another authority": foreign, "another name": client(t, n.Authority, "node")} {
		if _, err := n.connect(t, config).Check(t.Context(), proposal.Plan{}); code(err) != "session.lost" {
			t.Errorf("%s: %v", what, err)
		}
	}
	trusting := client(t, n.Authority, "serve")
	trusting.RootCAs = other.Pool
	if _, err := n.connect(t, trusting).Check(t.Context(), proposal.Plan{}); code(err) != "session.lost" || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a server of another authority: %v", err)
	}
	old := client(t, n.Authority, "serve")
	old.MaxVersion = tls.VersionTLS12
	none := client(t, n.Authority, "serve")
	none.Certificates = nil
	for what, config := range map[string]*tls.Config{"TLS 1.2": old, "no certificate": none} {
		if status, err := get(n.address, config, "GET /session/events HTTP/1.1\r\nHost: node\r\n\r\n"); err == nil {
			t.Errorf("%s: %s", what, status)
		}
	}
}

// get sends text to a server and returns the first line of the answer.
func get(address string, config *tls.Config, text string) (string, error) {
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, text)
		sent <- err
	}()
	// A server that refuses a long text answers before it has read it, and then resets the connection.
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil {
		return line, nil
	}
	c.Close()
	return line, errors.Join(<-sent, err)
}

// Options that would let anyone in are refused, on both sides.
func TestOpenOptions(t *testing.T) {
	a := certtest.NewAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*remote.Options){
		"no TLS": func(o *remote.Options) { o.TLS = nil }, "no gate": func(o *remote.Options) { o.Gate = nil },
		"any client": func(o *remote.Options) { o.TLS.ClientAuth = tls.RequireAnyClientCert }, "no certificates of clients": func(o *remote.Options) { o.TLS.ClientAuth = tls.VerifyClientCertIfGiven },
		"every authority": func(o *remote.Options) { o.TLS.ClientCAs = nil }, "TLS 1.2": func(o *remote.Options) { o.TLS.MinVersion = tls.VersionTLS12 }, "no version": func(o *remote.Options) { o.TLS.MinVersion = 0 },
		"another configuration": func(o *remote.Options) {
			o.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		},
	} {
		o := remote.Options{Gate: &gate.Gate{}, TLS: server(t, a), Ended: func(proposal.Report, error) {}}
		change(&o)
		if err := remote.Serve(t.Context(), l, o); code(err) != "remote.options" {
			t.Errorf("server, %s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*remote.ClientOptions){
		"no address": func(o *remote.ClientOptions) { o.Address = "" }, "no TLS": func(o *remote.ClientOptions) { o.TLS = nil }, "no logs": func(o *remote.ClientOptions) { o.Logs = "" },
		"no certificate": func(o *remote.ClientOptions) { o.TLS.Certificates = nil }, "every authority": func(o *remote.ClientOptions) { o.TLS.RootCAs = nil },
		"no name": func(o *remote.ClientOptions) { o.TLS.ServerName = "" }, "any server": func(o *remote.ClientOptions) { o.TLS.InsecureSkipVerify = true },
		"TLS 1.2": func(o *remote.ClientOptions) { o.TLS.MaxVersion = tls.VersionTLS12 },
	} {
		o := remote.ClientOptions{Address: "127.0.0.1:1", TLS: client(t, a, "serve"), Logs: t.TempDir()}
		change(&o)
		if _, err := remote.New(o); code(err) != "remote.options" {
			t.Errorf("client, %s: %v", what, err)
		}
	}
}

// A session is of one client, and a server has one, also after it has ended.
func TestTaken(t *testing.T) {
	lanetest.SkipShort(t)
	n := newNode(t)
	first, err := n.connect(t, client(t, n.Authority, "serve")).Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second := n.connect(t, client(t, n.Authority, "serve"))
	if _, err := second.Open(t.Context(), gate.SessionOptions{}); code(err) != "session.taken" {
		t.Errorf("a second session: %v", err)
	}
	web := http.Client{Transport: &http.Transport{TLSClientConfig: client(t, n.Authority, "serve"), DisableKeepAlives: true}}
	for _, path := range []string{"GET /session/events", "POST /list", "POST /changes", "POST /asked", "POST /diff", "GET /file?path=x", "GET /artifact?name=f0", "POST /session/close", "POST /session/cancel", "POST /proposals", "POST /processes", "POST /running/c1/end", "POST /running/c1/interrupt", "PUT /file?path=x"} {
		method, path, _ := strings.Cut(path, " ")
		for _, token := range []string{"", "Bearer ", "Bearer wrong"} {
			r, err := http.NewRequest(method, "https://"+n.address+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", token)
			answer, err := web.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(text), "session.unknown") {
				t.Errorf("%s with the token %q: %s, %s", path, token, answer.Status, text)
			}
		}
	}
	if _, err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := second.Open(t.Context(), gate.SessionOptions{}); code(err) != "session.taken" && code(err) != "session.lost" {
		t.Errorf("after the session: %v", err)
	}
}

// Requests have bounds.
func TestHostileClient(t *testing.T) {
	lanetest.SkipShort(t)
	n := newNode(t)
	c := n.connect(t, client(t, n.Authority, "serve"))
	s, err := c.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), shell("large", strings.Repeat("x", 2<<20))); code(err) != "session.request" {
		t.Errorf("a large proposal: %v", err)
	}
	if _, err := s.Put(t.Context(), "large", make([]byte, 33<<20)); code(err) != "session.request" {
		t.Errorf("a large file: %v", err)
	}
	if _, err := s.List(t.Context(), strings.Repeat("x", 1<<20)); code(err) != "session.request" {
		t.Errorf("a long name: %v", err)
	}
	config := client(t, n.Authority, "serve")
	body := func(text string) string {
		return fmt.Sprintf("POST /check HTTP/1.1\r\nHost: node\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	for what, text := range map[string]string{
		"unknown fields": body(`{"proposals": [], "trusted": true}`), "two documents": body(`{} {}`), "repeated fields": body(`{"proposals": [], "Proposals": []}`), "no document": body("x"), "a large document": body(`{"proposer": "` + strings.Repeat("x", 2<<20) + `"}`),
	} {
		if status, err := get(n.address, config, text); err != nil || !strings.Contains(status, "422") {
			t.Errorf("%s: %q, %v", what, status, err)
		}
	}
	if status, err := get(n.address, config, "GET / HTTP/1.1\r\nHost: node\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n"); err == nil && !strings.Contains(status, "431") {
		t.Errorf("large headers: %q", status)
	}
	if r, err := s.Do(t.Context(), shell("on", "echo on")); err != nil || !r.Result.Succeeded() {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
	if _, err := s.Close(); err != nil {
		t.Error(err)
	}
}

// begun opens a session and runs a command that does not end.
func begun(t *testing.T, c *remote.Client) (gate.Session, chan error) {
	t.Helper()
	s, err := c.Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		_, err := s.Do(gate.WithOutput(t.Context(), func(proposal.Chunk) { on <- struct{}{} }), shell("long", "echo on; sleep 600"))
		ended <- err
	}()
	select {
	case <-on:
	case err := <-ended:
		t.Fatal(err)
	}
	return s, ended
}

// A relay passes connections on, until it is cut.
type relay struct {
	address string
	cut     context.CancelFunc
}

func newRelay(t *testing.T, to string) relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			go func() { _, _ = io.Copy(far, near); far.Close() }()
		}
	}()
	return relay{l.Addr().String(), cancel}
}

// A connection that breaks is known at both ends: the command and then the session end, and the log
// is sealed where it was written.
func TestCut(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	n := newNode(t)
	r := newRelay(t, n.address)
	n.address = r.address
	c := n.connect(t, client(t, n.Authority, "serve"))
	c.RetrySoon()
	s, ended := begun(t, c)
	r.cut()
	if err := <-ended; code(err) != "session.lost" {
		t.Errorf("the command: %v", err)
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Error("the client does not know that the server is gone")
	}
	if report, err := s.Close(); code(err) != "session.lost" || report.Run.ID != s.ID() || report.Error == nil {
		t.Errorf("%+v, %v", report, err)
	}
	select {
	case report := <-n.reports:
		if report.Audit == nil || report.Run.ID != s.ID() || len(report.Records) != 1 || report.Records[0].Result.Killed == "" {
			t.Errorf("the server's report: %+v", report.Records)
		}
	case <-time.After(time.Minute):
		t.Error("the server does not end the session of a client that is away")
	}
}

// A server that is stopped kills what runs, and its client gets the log.
func TestStopped(t *testing.T) {
	lanetest.SkipShort(t)
	n := newNode(t)
	s, ended := begun(t, n.connect(t, client(t, n.Authority, "serve")))
	n.stop()
	<-ended
	<-s.Done()
	if report, err := s.Close(); code(err) != "run.cancelled" || report.Audit == nil {
		t.Errorf("%+v, %v", report.Audit, err)
	}
}

// What is larger than a Record's excerpt is fetched, and no name of the server's file system is in
// what the client returns.
func TestNoForeignPaths(t *testing.T) {
	lanetest.SkipShort(t)
	n := newNode(t)
	s, err := n.connect(t, client(t, n.Authority, "serve")).Open(t.Context(), gate.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Do(t.Context(), proposal.Proposal{ID: "much", Run: "seq 1 200000 | tee out", Outputs: []string{"out"}})
	if err != nil || r.Result == nil || r.Result.Stdout.File == "" {
		t.Fatalf("%+v, %v", r.Result, err)
	}
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(r.Result.Outputs, report.Records[0].Result.Outputs...) {
		if o.File != "" {
			t.Errorf("an output names %q", o.File)
		}
	}
	if file := report.Records[0].Result.Stdout.File; file != "" {
		t.Errorf("the report names %q", file)
	}
	if !bytes.Contains([]byte(r.Result.Stdout.File), []byte(s.ID())) {
		t.Errorf("the copy is %q", r.Result.Stdout.File)
	}
}
