// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// A Session is a gate.Session of the server. Its methods are safe for concurrent use. If the
// connection breaks during a call, the error is session.lost, and what ran was killed.
type Session struct {
	client    *Client
	id, token string

	ctx   context.Context // ends when the server is lost
	lose  context.CancelCauseFunc
	ended chan struct{} // closed when the server says that the session has ended
	done  chan struct{}

	closing atomic.Bool
	once    sync.Once
	report  proposal.Report
	err     error
}

func (c *Client) begin(ctx context.Context, o opened) *Session {
	s := &Session{client: c, id: o.ID, token: o.Token, ended: make(chan struct{}), done: make(chan struct{})}
	s.ctx, s.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, s.stop)
	go func() {
		defer close(s.done)
		defer stop()
		s.follow()
	}()
	return s
}

// ID is gate.Session.ID.
func (s *Session) ID() string { return s.id }

// Log returns the path of the file that Close puts the log in. Until then there is none.
func (s *Session) Log() string { return filepath.Join(s.client.o.Logs, s.id+".jsonl") }

// Artifacts is gate.Session.Artifacts: ClientOptions.Artifacts.
func (s *Session) Artifacts() string { return s.client.o.Artifacts }

// Done is closed when the session has ended, for any reason, or when the server is gone: it was
// not heard for 30 seconds, or connections to it fail.
func (s *Session) Done() <-chan struct{} { return s.done }

// stop ends the session because the context of Open has ended.
func (s *Session) stop() {
	ctx, cancel := context.WithTimeout(s.ctx, s.client.bounds.patience)
	defer cancel()
	var answer struct{}
	_ = s.client.call(ctx, request{method: http.MethodPost, path: "/session/cancel", token: s.token}, &answer)
}

// open returns why no call can succeed any more, or nil.
func (s *Session) open() error {
	select {
	case <-s.ended:
		return errClosed
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	default:
		return nil
	}
}

// with returns a context that also ends when the server is lost, with that as its cause.
func (s *Session) with(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopCaller := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
	stopLost := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return inner, func() { stopCaller(); stopLost(); cancel(nil) }
}

// call sends a request of the session.
func (s *Session) call(ctx context.Context, q request, v any) error {
	if err := s.open(); err != nil {
		return err
	}
	ctx, cancel := s.with(ctx)
	defer cancel()
	q.token = s.token
	return s.client.call(ctx, q, v)
}

// named returns path with a query that has a name of the workspace.
func named(path, key, name string) (string, error) {
	if len(name) > maxName {
		return "", wire.Refusal("the name has more than 16 KiB", "shorten it")
	}
	return path + "?" + url.Values{key: {name}}.Encode(), nil
}

// Asked is gate.Session.Asked.
func (s *Session) Asked(ctx context.Context, p proposal.Proposal) (asked proposal.ClientApproval, err error) {
	return asked, s.call(ctx, request{method: http.MethodPost, path: "/asked", document: p}, &asked)
}

// List is gate.Session.List.
func (s *Session) List(ctx context.Context, pattern string) (found proposal.Changes, err error) {
	path, err := named("/files", "pattern", pattern)
	if err != nil {
		return found, err
	}
	return found, s.call(ctx, request{method: http.MethodGet, path: path}, &found)
}

// Changes is gate.Session.Changes.
func (s *Session) Changes(ctx context.Context) (list proposal.Changes, err error) {
	return list, s.call(ctx, request{method: http.MethodGet, path: "/changes"}, &list)
}

// Do is gate.Session.Do, for a proposal of at most 1 MiB as JSON. If ctx ends, the command is
// interrupted, and the Record says so; if that takes more than 30 seconds, the connection is
// ended, which kills it. The files of the Result are copies among ClientOptions.Artifacts.
func (s *Session) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	return s.propose(ctx, proposed{Proposal: p})
}

// DoApproved is gate.Session.DoApproved. The server checks a as the gate does.
func (s *Session) DoApproved(ctx context.Context, p proposal.Proposal, a proposal.ClientApproval) (proposal.Record, error) {
	return s.propose(ctx, proposed{Proposal: p, Approval: &a})
}

func (s *Session) propose(ctx context.Context, p proposed) (record proposal.Record, err error) {
	p.Output = hood.OutputOf(ctx) != nil
	x, err := s.command(ctx, request{method: http.MethodPost, path: "/proposals", document: p}, p.Output)
	if err != nil {
		return record, err
	}
	defer x.close()
	defer context.AfterFunc(ctx, x.interrupt)()
	return x.record(ctx, p.Proposal.ID)
}

// SetUp is gate.Session.SetUp.
func (s *Session) SetUp(ctx context.Context, each func(proposal.Record)) error {
	type document struct {
		Output bool `json:"output"`
	}
	x, err := s.command(ctx, request{method: http.MethodPost, path: "/session/setup", document: document{hood.OutputOf(ctx) != nil}}, hood.OutputOf(ctx) != nil)
	if err != nil {
		return err
	}
	defer x.close()
	defer context.AfterFunc(ctx, x.interrupt)()
	for {
		e, err := x.next(ctx)
		if err != nil || e.Ended {
			return err
		}
		if e.Record != nil && each != nil {
			each(x.fetched(*e.Record))
		}
	}
}

// follow returns when the session has ended or the server is lost.
func (s *Session) follow() {
	pause, tries := s.client.bounds.retry, 0
	for {
		heard, err := s.listen()
		if err == nil {
			close(s.ended)
			return
		}
		if heard {
			pause, tries = s.client.bounds.retry, 0
		}
		if tries++; tries > maxTries || !transient(err) {
			s.lose(err)
			return
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// maxTries is how often the client tries to reach a server again.
const maxTries = 3

// transient reports whether another connection may help.
func transient(err error) bool { return proposal.FailureOf(err).Code == "session.lost" }

// listen follows the stream of events of one connection. heard says that there was a sign of
// life. The error is nil if the session has ended.
func (s *Session) listen() (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	silent := time.AfterFunc(s.client.bounds.silence, func() { cancel(lost(errSilent)) })
	defer silent.Stop()
	answer, err := s.client.send(ctx, request{method: http.MethodGet, path: "/session/events", token: s.token})
	if err != nil {
		return false, ended(ctx, err)
	}
	defer answer.Body.Close()
	begun := time.Now()
	for r, n := newReader(answer.Body, maxFailure, s.client.bounds.output), 0; ; n++ {
		e, err := r.event(minEvent)
		switch {
		case err != nil:
			return n > 0, ended(ctx, err)
		case e.Ended:
			return true, nil
		case !e.Alive || n > freeSigns+int(time.Since(begun)/time.Second):
			return true, invalidAnswer(errors.New("it is not a sign of life"))
		}
		silent.Reset(s.client.bounds.silence)
	}
}

// freeSigns is how many signs of life may come faster than one a second.
const freeSigns = 100

var errSilent = errors.New("the server is silent")
