// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A world is a Gate and its Session in memory. Its policy denies what contains "deny" and
// asks about what contains "ask". A command that is "wait" waits until its context ends.
type world struct {
	mu        sync.Mutex
	did       []string
	changes   int
	files     map[string][]byte
	redacted  string // the file of which Take shows less
	out       string // what commands print
	file      string // that has the whole of it
	policy    string
	setup     []string
	done      chan struct{}
	opened    int
	ended     bool             // done is closed
	result    *proposal.Result // of each command, if set
	context   string           // of the last one
	release   chan struct{}    // ends the command "wait", too
	alone     bool             // commands cannot run beside others
	artifacts string
	beside    int
	most      int
}

func newWorld() *world { return &world{policy: "sha256:policy", files: map[string][]byte{}} }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, args...))
}

func (w *world) has(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, did := range w.did {
		if strings.Contains(did, what) {
			return true
		}
	}
	return false
}

func (w *world) Open(context.Context, gate.SessionOptions) (gate.Session, error) {
	w.done = make(chan struct{})
	w.opened++
	w.note("open")
	return fake{world: w}, nil
}

func (w *world) Close() error { w.note("close gate"); return nil }

// A fake is w's Session.
type fake struct {
	gate.Session // nil: the server does not call its other methods
	*world
}

func (w *world) Check(_ context.Context, p proposal.Plan) (list []proposal.Record, err error) {
	for _, x := range p.Proposals {
		list = append(list, decide(x))
	}
	return list, nil
}

func decide(p proposal.Proposal) proposal.Record {
	text := p.Run + strings.Join(p.Argv, " ") + p.Code
	r := proposal.Record{Proposal: p, Analysis: proposal.Analysis{Canonical: text + "\n"}, Decision: proposal.Decision{Effect: proposal.Allow, Rules: []string{"test.allow"}}}
	switch {
	case strings.Contains(text, "deny"):
		r.Decision = points.DenyReason("test.deny", "it is denied", "propose another")
		r.Decision.Reasons[0].Alternatives = []string{"true"}
	case strings.Contains(text, "ask"):
		r.Decision = proposal.Decision{Effect: proposal.Ask, Reasons: []proposal.Reason{{Rule: "test.ask", Effect: proposal.Ask, Message: "a person decides"}}}
	}
	return r
}

func (w *world) do(ctx context.Context, r proposal.Record) (proposal.Record, error) {
	if !r.Runnable() {
		return r, nil
	}
	w.mu.Lock()
	w.changes++
	w.mu.Unlock()
	w.note("run %s", r.Analysis.Canonical)
	result := proposal.Result{WallMS: 5, Status: proposal.Exited, NewSandbox: !w.has("first")}
	w.note("first")
	if r.Proposal.Run == "wait" {
		if print := order.OutputOf(ctx); print != nil {
			print(proposal.Chunk{Stream: proposal.ChunkStdout, Data: []byte("1 of 2\n2 of \x1b[1m2\n")})
		}
		select {
		case <-w.release:
		case <-ctx.Done():
			w.note("killed")
			result.Status, result.Signal = proposal.Signaled, "SIGKILL"
		}
	}
	result.Stdout = proposal.Stream{Bytes: int64(len(w.out)), Head: []byte(w.out), File: w.file, FileBytes: int64(len(w.out))}
	r.Result = &result
	w.mu.Lock()
	defer w.mu.Unlock()
	w.context = r.Proposal.Context
	if w.result != nil {
		r.Result = w.result
	}
	return r, nil
}

func (f fake) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	if strings.Contains(p.Run, "broken") {
		return proposal.Record{}, &proposal.StopError{Code: "test.broken", Message: "the log could not be written", Hint: "free space"}
	}
	return f.do(ctx, decide(p))
}

// Start counts what runs beside others, of which most is the highest number.
func (f fake) Start(ctx context.Context, p proposal.Proposal) (gate.Process, error) {
	if f.alone {
		return nil, &proposal.StopError{Code: "session.background"}
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &fakeProcess{cancel: cancel, done: make(chan struct{})}
	f.countBeside(1)
	go func() {
		defer close(x.done)
		defer f.countBeside(-1)
		x.record, x.err = f.Do(inner, p)
	}()
	return x, nil
}

func (w *world) countBeside(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beside += more
	w.most = max(w.most, w.beside)
}

type fakeProcess struct {
	cancel context.CancelFunc
	done   chan struct{}
	record proposal.Record
	err    error
}

func (x *fakeProcess) Done() <-chan struct{} { return x.done }
func (x *fakeProcess) Interrupt() error      { return errors.New("it goes on") }
func (x *fakeProcess) Kill()                 { x.cancel() }

func (x *fakeProcess) Wait(ctx context.Context) (proposal.Record, error) {
	select {
	case <-x.done:
		return x.record, x.err
	case <-ctx.Done():
		return proposal.Record{}, ctx.Err()
	}
}

func (f fake) Diff(_ context.Context, paths ...string) (d proposal.Diff, err error) {
	for _, path := range paths {
		d.Files = append(d.Files, proposal.FileDiff{Path: path, Kind: "changed", Text: f.out})
	}
	d.Patch = proposal.Output{File: f.file, Bytes: int64(len(f.out) * len(paths))}
	return d, nil
}

func (f fake) asked(p proposal.Proposal) proposal.ClientApproval {
	f.mu.Lock()
	defer f.mu.Unlock()
	return proposal.ClientApproval{Session: f.ID(), Proposal: p.Digest(), Policy: f.policy, After: f.changes}
}

func (f fake) Asked(_ context.Context, p proposal.Proposal) (proposal.ClientApproval, error) {
	return f.asked(p), nil
}

func (f fake) DoApproved(ctx context.Context, p proposal.Proposal, a proposal.ClientApproval) (proposal.Record, error) {
	r := decide(p)
	if a.Covers(f.asked(p)) {
		r.ClientApproval = &a
	}
	return f.do(ctx, r)
}

func (f fake) SetUp(_ context.Context, _ proposal.Proposal, each func(proposal.Record)) error {
	f.mu.Lock()
	setup := f.setup
	f.setup = nil
	f.mu.Unlock()
	for _, text := range setup {
		r, _ := f.do(context.Background(), decide(proposal.Proposal{Run: text}))
		each(r)
	}
	return nil
}

func (f fake) Put(_ context.Context, name string, data []byte) (proposal.Output, error) {
	f.changes++
	f.files[name] = data
	return proposal.Output{Path: name, Bytes: int64(len(data))}, nil
}

func (f fake) Take(_ context.Context, name string) ([]byte, proposal.Output, error) {
	data, there := f.files[name]
	if !there {
		return nil, proposal.Output{Path: name, Refused: "no such file"}, nil
	}
	out := proposal.Output{Path: name, Bytes: int64(len(data))}
	if name == f.redacted {
		out.Redacted = []proposal.Redaction{{Rule: "test", Count: 1}}
	}
	return data, out, nil
}

func (f fake) List(context.Context, string) (proposal.Changes, error) {
	var list proposal.Changes
	for i := range 300 {
		list.Files = append(list.Files, proposal.Change{Path: fmt.Sprintf("f%03d", i), Type: "file"})
	}
	list.Files = append(list.Files, proposal.Change{Path: ".git", Type: "directory"}, proposal.Change{Path: ".git/config", Type: "file"})
	list.Omitted = 9
	return list, nil
}

func (f fake) Changes(context.Context) (proposal.Changes, error) {
	return proposal.Changes{Files: []proposal.Change{{Path: "a\x1b[31m\u202e", Kind: "added", Type: "file", Bytes: 1}}}, nil
}

func (f fake) ID() string            { return fmt.Sprintf("session-%d", f.opened) }
func (f fake) Log() string           { return f.file }
func (f fake) Artifacts() string     { return f.artifacts }
func (f fake) Done() <-chan struct{} { return f.done }

func (f fake) Close() (proposal.Report, error) {
	f.note("seal")
	if !f.ended {
		close(f.done)
	}
	f.ended = false
	return proposal.Report{Schema: proposal.ReportSchema, Run: proposal.Run{ID: f.ID()}}, nil
}

// start serves w to a client with the given options, and returns the client's session.
func start(t *testing.T, w *world, o Options, client mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	s := serverOf(w, o)
	here, there := mcp.NewInMemoryTransports()
	ss, err := s.mcp.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &client).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); _ = ss.Wait(); s.running.Wait() })
	return cs
}

func serverOf(w *world, o Options) *Server {
	if o.Gate == nil {
		o.Gate = func(context.Context, string) (gate.Opener, error) { return w, nil }
	}
	return New(o)
}

// call calls a tool.
func call(t *testing.T, cs *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// words returns a result's text.
func words(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if text, is := c.(*mcp.TextContent); is {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func writeFile(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits until done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
