// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Session is a gate.Session of the server. Its methods are safe for concurrent use. If the
// connection breaks during a call, the error is session.lost, and what ran was killed.
type Session struct {
	client             *Client
	id, token          string
	logFile, artifacts string

	ctx   context.Context // ends when the server is lost
	lose  context.CancelCauseFunc
	ended chan struct{} // closed when the server says that the session has ended
	done  chan struct{}

	closing atomic.Bool
	once    sync.Once
	report  proposal.Report
	stopped error
	err     error
}

// startFollowing follows the session s, whose client and names are set, until it has ended or Detach is
// called. The end of ctx ends the session.
func (s *Session) startFollowing(ctx context.Context) {
	s.ended, s.done = make(chan struct{}), make(chan struct{})
	s.ctx, s.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, s.stopSession)
	go func() {
		defer close(s.done)
		defer stop()
		s.followUntilEnd()
	}()
}

// Detach ends the use of the session, which goes on for its other clients. Later calls fail.
func (s *Session) Detach() {
	s.lose(errClosed)
	<-s.done
	s.client.http.CloseIdleConnections()
}

// ID is gate.Session.ID.
func (s *Session) ID() string { return s.id }

// Log returns the path of the log. That of a session on another machine is there when Close has
// returned.
func (s *Session) Log() string { return s.logFile }

// Artifacts is gate.Session.Artifacts; "" if there are none.
func (s *Session) Artifacts() string { return s.artifacts }

// Done is closed when the session has ended, for any reason, or when the server is gone: it was
// not heard for 30 seconds, or connections to it fail.
func (s *Session) Done() <-chan struct{} { return s.done }

// stopSession ends the session because the context of Open has ended.
func (s *Session) stopSession() {
	ctx, cancel := context.WithTimeout(s.ctx, s.client.bounds.patience)
	defer cancel()
	var answer struct{}
	_ = s.client.callServer(ctx, request{method: http.MethodPost, path: "/session/cancel", token: s.token}, &answer)
}

// checkOpen returns why no call can succeed any more, or nil.
func (s *Session) checkOpen() error {
	select {
	case <-s.ended:
		return errClosed
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	default:
		return nil
	}
}

// withSession returns a context that also ends when the server is lost, with that as its cause.
func (s *Session) withSession(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stopCaller := context.AfterFunc(ctx, func() { cancel(interruptionOf(ctx)) })
	stopLost := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return inner, func() { stopCaller(); stopLost(); cancel(nil) }
}

// interruptionOf returns ctx's error with a code for people; nil if ctx has not ended.
func interruptionOf(ctx context.Context) error {
	return errors.Join(order.InterruptionError(ctx), ctx.Err())
}

// callServer sends a request of the session.
func (s *Session) callServer(ctx context.Context, q request, v any) error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	ctx, cancel := s.withSession(ctx)
	defer cancel()
	q.token = s.token
	return s.client.callServer(ctx, q, v)
}

// handleEvents sends signs of life until the session has ended.
func (s *server) handleEvents(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	s.countStream()
	defer s.uncountStream()
	events := newStream(w)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		if err := events.sendEvent(event{Alive: true}); err != nil {
			return nil
		}
		select {
		case <-s.ended:
			_ = events.sendEvent(event{Ended: true})
			return nil
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// heartbeat is the time between two signs of life.
const heartbeat = 10 * time.Second

// followUntilEnd returns when the session has ended or the server is lost.
func (s *Session) followUntilEnd() {
	pause, tries := s.client.bounds.retry, 0
	for {
		heard, err := s.followEvents()
		if err == nil {
			close(s.ended)
			return
		}
		if heard {
			pause, tries = s.client.bounds.retry, 0
		}
		if tries++; tries > maxTries || !isTransient(err) {
			s.lose(err)
			return
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		pause *= 2
	}
}

// maxTries is how often the client tries to reach a server again.
const maxTries = 3

// isTransient reports whether another connection may help.
func isTransient(err error) bool { return errors.As(err, new(connectionError)) }

// followEvents follows the stream of events of one connection. heard says that there was a sign of
// life. The error is nil if the session has ended.
func (s *Session) followEvents() (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	silent := time.AfterFunc(s.client.bounds.silence, func() { cancel(s.client.lost(errSilent)) })
	defer silent.Stop()
	answer, err := s.client.sendRequest(ctx, request{method: http.MethodGet, path: "/session/events", token: s.token})
	if err != nil {
		return false, causeOrError(ctx, err)
	}
	defer answer.Body.Close()
	begun := time.Now()
	for r, n := s.client.newReader(answer.Body, maxFailure, s.client.bounds.output), 0; ; n++ {
		e, err := r.readEvent(minEvent)
		switch {
		case err != nil:
			return n > 0, causeOrError(ctx, err)
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
