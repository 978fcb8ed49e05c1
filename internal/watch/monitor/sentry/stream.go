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

// breaks ends the gate permanently and reports why.
func (g *gate) breaks(why byte) {
	if g.broken {
		return
	}
	g.broken = true
	if s := latch.Load(); s != nil {
		s.report(why)
	}
}

// write sends one message, and waits while the supervisor is slow. The caller holds
// g.mu.
func (g *gate) write(message []byte) error {
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
			g.breaks(Slow)
		default:
			g.breaks(Gone)
		}
		g.dropped.Add(1)
		return errBroken
	}
}

// read receives one message, and waits while the supervisor decides. The caller
// holds g.mu.
func (g *gate) read() (frame.Header[wire.Kind], []byte, error) {
	var b [64]byte // larger than any message of the supervisor
	for {
		n, err := unix.Read(g.socket.FD(), b[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			g.breaks(Slow)
		case err != nil || n == 0:
			g.breaks(Gone)
		default:
			h, body, err := wire.Open(b[:n])
			if err != nil || n == len(b) {
				g.breaks(Protocol)
				return frame.Header[wire.Kind]{}, nil, errBroken
			}
			return h, body, nil
		}
		return frame.Header[wire.Kind]{}, nil, errBroken
	}
}

func (g *gate) readable() bool {
	fds := []unix.PollFd{{Fd: int32(g.socket.FD()), Events: unix.POLLIN}}
	n, err := unix.Ppoll(fds, &unix.Timespec{}, nil)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}

// ask sends what t is about to do and returns whether it may. On any failure it may not.
func (g *gate) ask(t *kernel.Task, e *wire.Exec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = e.Key(g.key[:0])
	if k, ok := g.kept[string(g.key)]; ok && e.Reusable() {
		e.Of, e.Allowed = k.of, k.allow
		g.seq++
		return g.write(e.Append(g.buf[:0], g.seq)) == nil && k.allow
	}
	g.seq++
	if g.write(e.Append(g.buf[:0], g.seq)) != nil || e.Fault != "" {
		return false
	}
	v, ok := g.verdict()
	if !ok {
		return false
	}
	defer g.catchUp()
	if v.Allow && !e.Loads() {
		g.lineages.became(t.ThreadGroup(), v.Lineage)
	}
	if v.Keep && e.Reusable() {
		if len(g.kept) >= maxKept {
			clear(g.kept)
		}
		g.kept[string(g.key)] = kept{v.Allow, g.seq}
	}
	return v.Allow
}

// isAllowed reports whether a kept Verdict allows e, which then need not be reported again.
func (g *gate) isAllowed(e *wire.Exec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = e.Key(g.key[:0])
	return !g.broken && e.Reusable() && g.kept[string(g.key)].allow
}

// catchUp carries out an Order that came while a verdict was awaited.
func (g *gate) catchUp() {
	if o := g.order; o != nil {
		g.order = nil
		g.answer(*o)
	}
}

// verdict waits for the answer to the last message sent. An Order that comes before it waits.
func (g *gate) verdict() (wire.Verdict, bool) {
	h, body, err := g.read()
	if err == nil && h.Kind == wire.KindOrder && g.order == nil {
		order, ok := g.orderOf(h, body)
		if !ok {
			return wire.Verdict{}, false
		}
		g.order = &order
		h, body, err = g.read()
	}
	if err != nil {
		return wire.Verdict{}, false
	}
	v, err := wire.DecodeVerdict(body)
	if err != nil || h.Kind != wire.KindVerdict || h.Seq != g.seq {
		g.breaks(Protocol)
		return wire.Verdict{}, false
	}
	return v, true
}

// report sends e.
func (g *gate) report(e *wire.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.Path, e.Target = wire.Cut(e.Path, wire.MaxPath), wire.Cut(e.Target, wire.MaxPath)
	g.seq++
	_ = g.write(e.Append(g.buf[:0], g.seq))
}

// once reports whether nothing with this hash was reported since a generation began.
func (g *gate) once(hash uint64) bool {
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
