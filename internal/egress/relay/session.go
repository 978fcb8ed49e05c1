// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A session is one connection of a program, and its state.
type session struct {
	relay    *Relay
	client   *clientConn
	target   Target
	name     string // of the target, or its address
	began    time.Time
	decision proposal.EgressDecision // about the connection

	spent          *atomic.Int64 // by name, in the whole run
	limit          atomic.Int64  // the limit of spent; 0 means none
	sent, received atomic.Int64
	touched        atomic.Int64 // when a byte was last read or written, since began

	mu        sync.Mutex
	flow      proposal.Flow
	upstreams []net.Conn
	closed    bool
	over      chan struct{} // closed with the session
}

func newSession(r *Relay, client net.Conn, t Target, d proposal.EgressDecision) *session {
	s := &session{relay: r, target: t, decision: d, began: time.Now(), over: make(chan struct{}), name: t.Egress.Name}
	if s.name == "" {
		s.name = trimPort(t.Egress.Address)
	}
	s.client = &clientConn{Conn: client, session: s}
	s.flow = proposal.Flow{Egress: t.Egress, Decision: d, Inside: t.Inside}
	s.spent = r.budgets.counterOf(s.name)
	s.lowerLimit(d.Most)
	return s
}

// trimPort returns the address without its port, if any.
func trimPort(address string) string {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return ap.Addr().String()
	}
	return address
}

// lowerLimit applies a limit to the session; the lowest limit of all answers applies.
func (s *session) lowerLimit(limit proposal.Bytes) {
	for limit > 0 {
		now := s.limit.Load()
		if now > 0 && now <= int64(limit) || s.limit.CompareAndSwap(now, int64(limit)) {
			return
		}
	}
}

// serveAndReport serves the connection until it has ended, and reports the outcome.
func (s *session) serveAndReport(ctx context.Context) {
	serving, cancel := context.WithTimeout(ctx, s.relay.options.Limits.Total)
	defer cancel()
	stop := context.AfterFunc(serving, func() { s.recordInterruption(ctx); s.close() })
	idle := s.watchIdle()
	s.serveConnection(serving)
	if serving.Err() != nil { // canceling may close the connection before the AfterFunc runs
		s.recordInterruption(ctx)
	}
	stop()
	idle.Stop()
	s.close()
	s.reportFlow()
}

// recordInterruption records why the session cannot go on; ctx is the command's.
func (s *session) recordInterruption(ctx context.Context) {
	if ctx.Err() != nil {
		s.recordEndReason("cut", "the command has ended, or the run")
		return
	}
	s.recordEndReason("timeout", "the connection was open for too long")
}

// serveConnection chooses how the connection is handled.
func (s *session) serveConnection(ctx context.Context) {
	if s.decision.Effect != proposal.Allow {
		s.refuseConnection(refusal{code: "policy", message: "the connection was not allowed"})
		return
	}
	if s.decision.Raw && !s.decision.Intercept {
		s.passRaw(ctx)
		return
	}
	first, err := s.firstByte()
	switch {
	case err == io.EOF:
	case err != nil:
		s.refuseConnection(refusal{code: "limit", message: "the client sent nothing that identifies the host"})
	case first == 22 && s.decision.Intercept:
		s.interceptTLS(ctx)
	case first == 22:
		s.passTLS(ctx)
	case first >= 'A' && first <= 'Z':
		s.serveHTTP(ctx, newStrictReader(s.client, s.over), "http")
	default:
		s.refuseConnection(refusal{code: "protocol", message: "neither TLS nor HTTP"})
	}
}

// firstByte waits for the client's first byte and puts it back.
func (s *session) firstByte() (byte, error) {
	s.client.SetReadDeadline(time.Now().Add(s.relay.options.Limits.Hello))
	defer s.client.SetReadDeadline(time.Time{})
	b := make([]byte, 1)
	if _, err := io.ReadFull(s.client, b); err != nil {
		return 0, err
	}
	s.client.unreadBytes(b)
	return b[0], nil
}

// recordEndReason records why the session ends; only the first reason is kept.
func (s *session) recordEndReason(code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.flow.Code != "" {
		return
	}
	s.flow.Code = code
	if s.flow.Decision.Reason == nil {
		s.flow.Decision.Reason = refusalReason(code, message)
	}
}

// refuseConnection ends the session with r.
func (s *session) refuseConnection(r refusal) { s.recordEndReason(r.code, r.message) }

// endReason returns the code and message given to end.
func (s *session) endReason() (code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flow.Code != "" && s.flow.Decision.Reason != nil {
		message = s.flow.Decision.Reason.Message
	}
	return s.flow.Code, message
}

// close cuts everything, including connections that are dialed later.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		close(s.over)
	}
	s.closed = true
	s.client.Conn.Close()
	if s.target.Upstream != nil {
		s.target.Upstream.Close()
	}
	for _, u := range s.upstreams {
		u.Close()
	}
	s.upstreams = nil
}

func (s *session) reportFlow() {
	s.mu.Lock()
	f := s.flow
	s.mu.Unlock()
	f.Sent, f.Received = s.sent.Load(), s.received.Load()
	f.WallMS = time.Since(s.began).Milliseconds()
	s.relay.options.Report(f)
}

// watchIdle ends the session when no byte was read or written for Limits.Idle.
func (s *session) watchIdle() *time.Timer {
	limit := s.relay.options.Limits.Idle
	var timer *time.Timer
	var ready sync.WaitGroup
	ready.Add(1)
	timer = time.AfterFunc(limit, func() {
		ready.Wait()
		quiet := time.Since(s.began) - time.Duration(s.touched.Load())
		if quiet < limit {
			timer.Reset(limit - quiet)
			return
		}
		s.recordEndReason("idle", "no data was sent or received for "+limit.String())
		s.close()
	})
	ready.Done()
	return timer
}

func (s *session) markActive() { s.touched.Store(int64(time.Since(s.began))) }

// authorityFor returns the authority that a request for the target must have. port is ""
// for the scheme's default.
func authorityFor(name string, port string) string {
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if port == "" {
		return name
	}
	return name + ":" + port
}
