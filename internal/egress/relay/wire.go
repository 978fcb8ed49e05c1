// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// A clientConn is the program's end: its traffic counts as activity, and bytes can be put
// back.
type clientConn struct {
	net.Conn
	session *session
	put     []byte
}

// unreadBytes puts b back to be read again. Only the reading goroutine may call it.
func (w *clientConn) unreadBytes(b []byte) { w.put = append(b[:len(b):len(b)], w.put...) }

func (w *clientConn) Read(p []byte) (int, error) {
	if len(w.put) > 0 {
		n := copy(p, w.put)
		w.put = w.put[n:]
		return n, nil
	}
	n, err := w.Conn.Read(p)
	w.session.markActive()
	return n, err
}

// Ready reports whether a Read would return at once.
func (w *clientConn) Ready() bool { return len(w.put) > 0 || isReadable(w.Conn) }

func (w *clientConn) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.session.markActive()
	return n, err
}

// CloseWrite closes the connection for writing.
func (w *clientConn) CloseWrite() error { return closeWrite(w.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// A serverConn is the other end: bytes are counted and checked against the budget before
// they are sent.
type serverConn struct {
	net.Conn
	session *session
}

var errBudget = errors.New("more bytes than may be sent for this name, or in this run")

// spendBytes reports whether n more bytes may be sent, and counts them if so.
func (s *session) spendBytes(n int64) bool {
	after, all := s.spent.Add(n), s.relay.budgets.all.Add(n)
	if limit := s.limit.Load(); limit > 0 && after > limit || all > int64(s.relay.options.Limits.Run) {
		s.refundBytes(n)
		return false
	}
	return true
}

func (s *session) refundBytes(n int64) {
	s.spent.Add(-n)
	s.relay.budgets.all.Add(-n)
}

func (u *serverConn) Write(p []byte) (int, error) {
	s := u.session
	if !s.spendBytes(int64(len(p))) {
		s.recordEndReason("limit", errBudget.Error())
		u.Conn.Close()
		return 0, errBudget
	}
	n, err := u.Conn.Write(p)
	s.refundBytes(int64(len(p) - n))
	s.sent.Add(int64(n))
	s.markActive()
	return n, err
}

func (u *serverConn) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	u.session.received.Add(int64(n))
	u.session.markActive()
	return n, err
}

// Await waits, without using a buffer, until a Read would return at once, if the
// connection can report that.
func (u *serverConn) Await() error {
	if socket, ok := u.Conn.(syscall.Conn); ok {
		return waitReadable(socket)
	}
	return nil
}

// CloseWrite closes the connection for writing.
func (u *serverConn) CloseWrite() error { return closeWrite(u.Conn) }

// stale is the age at which the server may have closed a connection that was made in
// advance and not used yet.
const stale = 5 * time.Second

var errCut = errors.New("the connection was cut")

// dialTarget returns the connection that came with the target, once, and then new ones.
func (s *session) dialTarget(ctx context.Context) (net.Conn, error) {
	c := s.takeUpstream()
	if c == nil {
		if s.target.Dial == nil {
			return nil, errors.New("the connection cannot be made again")
		}
		var err error
		if c, err = s.target.Dial(ctx); err != nil {
			return nil, err
		}
	}
	return s.closeWithSession(c)
}

// takeUpstream returns the target's own connection, if it exists and is either fresh or
// impossible to replace.
func (s *session) takeUpstream() net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.target.Upstream
	s.target.Upstream = nil
	if c != nil && s.target.Dial != nil && time.Since(s.began) > stale {
		c.Close()
		return nil
	}
	return c
}

// closeWithSession makes c close with the session.
func (s *session) closeWithSession(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return nil, errCut
	}
	s.upstreams = append(s.upstreams, c)
	return &serverConn{Conn: c, session: s}, nil
}
