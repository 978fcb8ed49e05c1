// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A world is a Gate and its Session in memory, for what must happen before anything reaches a
// sandbox. Its policy denies what contains "deny". "wait" waits until its context ends.
type world struct {
	mu    sync.Mutex
	did   []string
	files map[string]string
	done  chan struct{}
}

func newWorld() *world { return &world{files: map[string]string{}, done: make(chan struct{})} }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *world) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.did)
}

func (w *world) has(what string) bool { return slices.Contains(w.all(), what) }

func (w *world) Open(context.Context, gate.SessionOptions) (gate.Session, error) {
	w.note("open")
	return fake{world: w}, nil
}

func (w *world) Close() error { w.note("close gate"); return nil }

func (w *world) Check(_ context.Context, p proposal.Plan) (list []proposal.Record, err error) {
	for _, x := range p.Proposals {
		list = append(list, decide(x))
	}
	return list, nil
}

func decide(p proposal.Proposal) proposal.Record {
	text := p.Run + strings.Join(p.Argv, " ") + p.Code + fmt.Sprint(p.Env)
	r := proposal.Record{Proposal: p, Decision: proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{}}}
	if strings.Contains(text, "deny") {
		r.Decision = points.DenyReason("test.deny", "it is denied", "propose another")
	}
	return r
}

// A fake is w's Session.
type fake struct {
	gate.Session // nil: the server does not call its other methods
	*world
}

func (f fake) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	r := decide(p)
	if !r.Runnable() {
		return r, nil
	}
	f.note("run %s%s%s", p.Run, p.Code, strings.Join(p.Argv, " "))
	r.Result = &proposal.Result{Status: proposal.Exited, Stdout: proposal.Stream{Head: []byte("hi\n"), Bytes: 3}}
	if p.Run == "wait" {
		<-ctx.Done()
		f.note("killed")
		r.Result.Status, r.Result.Signal = proposal.Signaled, "SIGKILL"
	}
	return r, nil
}

// A job is a command of a fake in the background.
type job struct {
	gate.Process // nil, likewise
	kill         context.CancelFunc
	done         chan struct{}
	r            proposal.Record
	err          error
}

func (f fake) Start(_ context.Context, p proposal.Proposal) (gate.Process, error) {
	if strings.Contains(p.Run, "many") {
		return nil, &proposal.StopError{Code: "session.background", Message: "too many"}
	}
	ctx, kill := context.WithCancel(context.Background())
	j := &job{kill: kill, done: make(chan struct{})}
	go func() { defer close(j.done); j.r, j.err = f.Do(ctx, p) }()
	return j, nil
}

func (j *job) Kill() { j.kill() }

func (j *job) Wait(context.Context) (proposal.Record, error) { <-j.done; return j.r, j.err }

func (f fake) SetUp(context.Context, proposal.Proposal, func(proposal.Record)) error { return nil }

func (f fake) Put(_ context.Context, name string, data []byte) (proposal.Output, error) {
	f.note("put %s %s", name, data)
	return proposal.Output{Path: name}, nil
}

func (f fake) PutPart(_ context.Context, name string, data []byte) (proposal.Output, error) {
	f.note("append %s %d", name, len(data))
	return proposal.Output{Path: name}, nil
}

func (f fake) Take(_ context.Context, name string) ([]byte, proposal.Output, error) {
	return []byte("data"), proposal.Output{Path: name}, nil
}

func (f fake) List(context.Context, string) (proposal.Changes, error) {
	return proposal.Changes{}, nil
}

func (f fake) Pause(context.Context) error { f.note("pause"); return nil }

func (f fake) Resume(context.Context) error { f.note("resume"); return nil }

func (f fake) Close() (proposal.Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.did, "seal") {
		f.did = append(f.did, "seal")
		close(f.done)
	}
	return proposal.Report{}, nil
}

func (f fake) Done() <-chan struct{} { return f.done }

const (
	key   = "0123456789abcdef0123456789abcdef"
	other = "fedcba9876543210fedcba9876543210"
)

// A desk is a server with fake gates and a client.
type desk struct {
	t      *testing.T
	server *Server
	url    string
	stop   func()
	mu     sync.Mutex
	worlds []*world
}

func newDesk(t *testing.T, o Options) *desk {
	t.Helper()
	d := &desk{t: t}
	if o.Gate == nil {
		o.Gate = func(context.Context, string) (gate.Opener, error) {
			w := newWorld()
			d.mu.Lock()
			defer d.mu.Unlock()
			d.worlds = append(d.worlds, w)
			return w, nil
		}
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(key+"\n"+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := localhttp.ReadTokens(file, "x", false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := localhttp.ListenLoopback(t.Context(), "127.0.0.1:0", "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	d.server = New(o)
	go func() { ended <- d.server.ServeClients(ctx, l, keys) }()
	d.url, d.stop = "http://"+l.Addr().String(), sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

// sandbox returns what the server has of m.
func (d *desk) sandbox(m made) *sandbox {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	return d.server.sandboxes[m.SandboxID]
}

// call sends a request and returns the status and the body.
func (d *desk) call(method, path, body string, headers map[string]string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.Header.Get("Retry-After") != "" {
		d.t.Errorf("%s %s: the SDK would try again by itself", method, path)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

// cut sends a request whose connection may be cut off, and returns the body so far.
func (d *desk) cut(method, path, body string, headers map[string]string) string {
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Error(err)
		return ""
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	data, _ := io.ReadAll(r.Body)
	return string(data)
}

// A made is a sandbox as its client knows it.
type made struct {
	SandboxID, EnvdAccessToken, TrafficAccessToken string
}

func (d *desk) create(apiKey, body string) made {
	d.t.Helper()
	status, text := d.call("POST", "/v2/sandboxes", body, map[string]string{"X-API-KEY": apiKey})
	var m made
	if err := json.Unmarshal([]byte(text), &m); err != nil || status != 201 {
		d.t.Fatalf("%d: %s", status, text)
	}
	return m
}

// envd and code are the headers of requests to the two ports of a sandbox.
func (m made) envd() map[string]string {
	return map[string]string{"E2b-Sandbox-Id": m.SandboxID, "E2b-Sandbox-Port": envdPort, "X-Access-Token": m.EnvdAccessToken, "Content-Type": "application/json"}
}

func (m made) code() map[string]string {
	return map[string]string{"E2b-Sandbox-Id": m.SandboxID, "E2b-Sandbox-Port": codePort, "E2B-Traffic-Access-Token": m.TrafficAccessToken, "Content-Type": "application/json"}
}

func with(headers map[string]string, name, value string) map[string]string {
	more := map[string]string{name: value}
	for n, v := range headers {
		if n != name {
			more[n] = v
		}
	}
	return more
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
