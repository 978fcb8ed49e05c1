// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/interpreter"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// Options configure Host. All functions are required.
type Options struct {
	Name      string
	Workspace string // for Info
	// Gate makes the gate. Host closes it.
	Gate func() (*gate.Gate, error)
	gate.SessionOptions
	// Ready is called when clients can connect, with the session's directory.
	Ready func(info Info, dir string) error
	// Ended is called with the report when the log is sealed.
	Ended func(proposal.Report, error)
}

// Host opens a session and serves it until a client ends it, ctx ends, or it was idle or open
// for too long. Then the running command has been killed and the log is sealed. The error, a
// *proposal.StopError, says that there was no session.
func Host(ctx context.Context, o Options) error {
	p, err := claim(o.Name)
	if err != nil {
		return err
	}
	defer func() { _ = p.Remove() }()
	g, err := o.Gate()
	if err != nil {
		return err
	}
	defer g.Close()
	lifetime, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(o.Lifetime, gate.DefaultLifetime))
	defer cancel()
	inner, err := g.Open(lifetime, o.SessionOptions)
	if err != nil {
		return err
	}
	h := newHost(lifetime, inner, o)
	listener, err := p.listen()
	if err == nil {
		err = p.write(h.info)
	}
	if err == nil {
		err = o.Ready(h.info, p.Path)
	}
	if err != nil {
		_, endErr := inner.Close()
		return errors.Join(&proposal.StopError{Code: "session.start", Message: fmt.Sprintf("cannot serve the session %q", o.Name), Hint: "free space in the user's state directory", Err: err}, endErr)
	}
	h.serve(ctx, listener)
	return nil
}

// A host serves one session.
type host struct {
	session gate.Session
	ctx     context.Context // ends after the session's lifetime
	o       Options
	info    Info

	running wire.Running

	setup struct {
		once  sync.Once
		done  chan struct{}
		err   error
		mu    sync.Mutex
		notes []string // of failures, for the first answer
	}

	end  sync.Once
	last Ended
}

func newHost(ctx context.Context, s gate.Session, o Options) *host {
	h := &host{session: s, ctx: ctx, o: o,
		info: Info{Name: o.Name, Session: s.ID(), Log: absolute(s.Log()), Workspace: absolute(o.Workspace), PID: os.Getpid(), Started: time.Now()}}
	h.setup.done = make(chan struct{})
	return h
}

// serve answers until the session has ended.
func (h *host) serve(ctx context.Context, l net.Listener) {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /session", func(w http.ResponseWriter, _ *http.Request) { wire.Answer(w, h.state(), nil) })
	routes.HandleFunc("POST /proposals", h.propose)
	routes.HandleFunc("POST /proposals/{id}/interrupt", h.interrupt)
	routes.HandleFunc("GET /files", h.list)
	routes.HandleFunc("GET /file", h.take)
	routes.HandleFunc("PUT /file", h.put)
	routes.HandleFunc("GET /diff", h.diff)
	routes.HandleFunc("POST /end", func(w http.ResponseWriter, _ *http.Request) { h.close(); wire.Answer(w, h.last, nil) })
	server := http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 20}
	go func() { _ = server.Serve(l) }()
	select {
	case <-ctx.Done():
	case <-h.session.Done():
	}
	h.close()
	late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(late) // the answer to end is on its way
	_ = server.Close()
}

// close ends the session, once.
func (h *host) close() {
	h.end.Do(func() {
		report, err := h.session.Close()
		h.o.Ended(report, err)
		h.last = Ended{Name: h.o.Name, Totals: report.Totals, Log: h.info.Log, Error: proposal.FailureOf(err)}
		if report.Audit != nil {
			h.last.Key = report.Audit.Key
		}
	})
}

func (h *host) state() Info {
	info := h.info
	info.Proposals, info.Running = h.running.Count()
	return info
}

// defaultContext is the context of code that names none.
const defaultContext = "main"

// propose decides a proposal and runs it if it is allowed. The answer is a stream of events.
func (h *host) propose(w http.ResponseWriter, r *http.Request) {
	var p proposal.Proposal
	if err := wire.Decode(w, r, &p); err != nil {
		wire.Answer(w, nil, err)
		return
	}
	if _, keeps := interpreter.LanguageOf(p.Language); keeps && p.Code != "" {
		p.Context = cmp.Or(p.Context, defaultContext)
	}
	id, ctx, ended := h.running.Begin(r.Context())
	defer ended()
	p.ID = id
	events := wire.NewStream(w)
	_ = events.Send(wire.Event{ID: p.ID})
	record, err := h.do(ctx, p, events)
	if err != nil {
		_ = events.Send(wire.Event{Error: proposal.FailureOf(err)})
		return
	}
	_ = events.Send(wire.Event{Record: &record})
}

func (h *host) do(ctx context.Context, p proposal.Proposal, events *wire.Stream) (proposal.Record, error) {
	if err := h.setUp(ctx, events); err != nil {
		return proposal.Record{}, err
	}
	return h.session.Do(gate.WithOutput(ctx, func(c proposal.Chunk) { _ = events.Send(wire.Event{Output: &c}) }), p)
}

// setUp installs the dependencies before the first proposal. It ends with the session, not
// with the client that waits first: the next one needs it too.
func (h *host) setUp(ctx context.Context, events *wire.Stream) error {
	u := &h.setup
	u.once.Do(func() {
		go func() {
			defer close(u.done)
			u.err = h.session.SetUp(h.ctx, func(r proposal.Record) {
				if why := setupFailure(r); why != "" {
					u.notes = append(u.notes, why)
				}
			})
		}()
	})
	select {
	case <-u.done:
	case <-ctx.Done():
		return hood.Interruption(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, why := range u.notes {
		_ = events.Send(wire.Event{Note: why})
	}
	u.notes = nil
	return u.err
}

// setupFailure says what a command of the set-up could not do, or "".
func setupFailure(r proposal.Record) string {
	command := "set-up command " + text.Inline(strings.TrimSpace(r.Analysis.Canonical), 80) + ": "
	switch {
	case !r.Runnable():
		return command + r.Decision.Effect.String()
	case r.Result != nil && !r.Result.Succeeded():
		return command + r.Result.Outcome()
	}
	return ""
}

func (h *host) interrupt(w http.ResponseWriter, r *http.Request) {
	wire.Answer(w, struct{}{}, h.running.Cancel(r.PathValue("id")))
}

func (h *host) list(w http.ResponseWriter, r *http.Request) {
	found, err := h.session.List(r.Context(), cmp.Or(r.FormValue("pattern"), "*"))
	wire.Answer(w, found, err)
}

// take answers with the Output. Its File is absolute, below a directory that only this user
// may enter, so that the client copies it without a bound in memory.
func (h *host) take(w http.ResponseWriter, r *http.Request) {
	_, out, err := h.session.Take(r.Context(), r.FormValue("path"))
	if out.File != "" {
		out.File = absolute(filepath.Join(h.session.Artifacts(), out.File))
	}
	wire.Answer(w, out, err)
}

func (h *host) put(w http.ResponseWriter, r *http.Request) {
	data, err := wire.ReadFile(w, r)
	if err != nil {
		wire.Answer(w, nil, err)
		return
	}
	out, err := h.session.Put(r.Context(), r.URL.Query().Get("path"), data)
	wire.Answer(w, out, err)
}

func (h *host) diff(w http.ResponseWriter, r *http.Request) {
	d, err := h.session.Diff(r.Context(), r.URL.Query()["path"]...)
	d.Patch.File = absolute(d.Patch.File)
	wire.Answer(w, d, err)
}

// absolute returns path, if there is one, for clients, which have other working directories.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "" {
		return full
	}
	return path
}
