// SPDX-License-Identifier: Apache-2.0

package sentry

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/sentry/kernel"

	"github.com/fumehood/fumehood/internal/kit/frame"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

var errBroken = errors.New("gate is broken")

// latch writes to the FIFO of the sink Name, which works even if the gate's socket
// does not.
var latch atomic.Pointer[sink]

// breakGate ends the gate permanently and reports why.
func (g *execGate) breakGate(why byte) {
	if g.broken {
		return
	}
	g.broken = true
	if s := latch.Load(); s != nil {
		s.reportLimit(why)
	}
}

// writeMessage sends one message, and waits while the supervisor is slow. The caller holds
// g.mu.
func (g *execGate) writeMessage(message []byte) error {
	g.buf = message[:0]
	if g.broken {
		g.dropped.Add(1)
		return errBroken
	}
	for {
		// A signal that Go sends to its own threads makes a socket call with a
		// timeout return early; nothing was sent then.
		_, err := unix.Write(g.socket.FD(), message)
		switch err {
		case nil:
			return nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			g.breakGate(Slow)
		default:
			g.breakGate(Gone)
		}
		g.dropped.Add(1)
		return errBroken
	}
}

// readMessage receives one message, and waits while the supervisor decides. The caller
// holds g.mu.
func (g *execGate) readMessage() (frame.Header[wire.Kind], []byte, error) {
	var b [64]byte // larger than any message of the supervisor
	for {
		n, err := unix.Read(g.socket.FD(), b[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			g.breakGate(Slow)
		case err != nil || n == 0:
			g.breakGate(Gone)
		default:
			h, body, err := wire.Open(b[:n])
			if err != nil || n == len(b) {
				g.breakGate(Protocol)
				return frame.Header[wire.Kind]{}, nil, errBroken
			}
			return h, body, nil
		}
		return frame.Header[wire.Kind]{}, nil, errBroken
	}
}

func (g *execGate) isReadable() bool {
	fds := []unix.PollFd{{Fd: int32(g.socket.FD()), Events: unix.POLLIN}}
	n, err := unix.Ppoll(fds, &unix.Timespec{}, nil)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// askSupervisor sends what t is about to do and returns whether it may. On any failure it may not.
func (g *execGate) askSupervisor(t *kernel.Task, e *wire.Exec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = e.AppendKey(g.key[:0])
	if k, ok := g.kept[string(g.key)]; ok && e.IsReusable() {
		e.Of, e.Allowed = k.of, k.allow
		g.seq++
		return g.writeMessage(e.Append(g.buf[:0], g.seq)) == nil && k.allow
	}
	g.seq++
	if g.writeMessage(e.Append(g.buf[:0], g.seq)) != nil || e.Fault != "" {
		return false
	}
	v, ok := g.readVerdict()
	if !ok {
		return false
	}
	defer g.catchUp()
	if v.Allow && !e.IsLoad() {
		g.lineages.setLineage(t.ThreadGroup(), v.Lineage)
	}
	if v.Keep && e.IsReusable() {
		if len(g.kept) >= maxKept {
			clear(g.kept)
		}
		g.kept[string(g.key)] = kept{v.Allow, g.seq}
	}
	return v.Allow
}

// isAllowed reports whether a kept Verdict allows e, which then need not be reported again.
func (g *execGate) isAllowed(e *wire.Exec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = e.AppendKey(g.key[:0])
	return !g.broken && e.IsReusable() && g.kept[string(g.key)].allow
}

// catchUp carries out an Order that came while a verdict was awaited.
func (g *execGate) catchUp() {
	if o := g.order; o != nil {
		g.order = nil
		g.answerOrder(*o)
	}
}

// readVerdict waits for the answer to the last message sent. An Order that comes before it waits.
func (g *execGate) readVerdict() (wire.Verdict, bool) {
	h, body, err := g.readMessage()
	if err == nil && h.Kind == wire.KindOrder && g.order == nil {
		order, ok := g.orderOf(h, body)
		if !ok {
			return wire.Verdict{}, false
		}
		g.order = &order
		h, body, err = g.readMessage()
	}
	if err != nil {
		return wire.Verdict{}, false
	}
	v, err := wire.DecodeVerdict(body)
	if err != nil || h.Kind != wire.KindVerdict || h.Seq != g.seq {
		g.breakGate(Protocol)
		return wire.Verdict{}, false
	}
	return v, true
}

// reportEvent sends e.
func (g *execGate) reportEvent(e *wire.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.Path, e.Target = wire.Truncate(e.Path, wire.MaxPath), wire.Truncate(e.Target, wire.MaxPath)
	g.seq++
	_ = g.writeMessage(e.Append(g.buf[:0], g.seq))
}

// isFirstReport reports whether nothing with this hash was reported since a generation began.
func (g *execGate) isFirstReport(hash uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.seen[hash]; ok {
		return false
	}
	if len(g.seen) >= maxSeen {
		clear(g.seen)
	}
	g.seen[hash] = struct{}{}
	return true
}
