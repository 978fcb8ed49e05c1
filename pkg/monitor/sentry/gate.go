// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sentry

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"

	"github.com/fumehood/fumehood/pkg/monitor/wire"
)

// GateName is the name of the sink that asks and tells. Its configuration must have
// "socket", the path of the supervisor's socket, and "patience", how many milliseconds
// the kernel waits for the supervisor. It may have "trees", where overlays lie that
// the sandbox's init made.
const GateName = "fumehood-gate"

// What the sink Name tells of the sink GateName: why it refuses everything from then
// on.
const (
	Slow     = 's' // the supervisor did not take or answer a message in time
	Gone     = 'g' // its socket was closed
	Protocol = 'x' // it said what it may not
)

func init() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: GateName, Setup: setupGate, New: newGate})
}

// setupGate runs on the host, in the process that creates the sandbox. What the
// sandbox's kernel needs of the socket it gets here, since its own seccomp filter
// lets it read and write only.
func setupGate(config map[string]any) (*os.File, error) {
	path, ok := config["socket"].(string)
	if !ok {
		return nil, errors.New("sink fumehood-gate: no socket in the configuration")
	}
	milliseconds, _ := config["patience"].(float64)
	if milliseconds < 1 {
		return nil, errors.New("sink fumehood-gate: no patience in the configuration")
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(s), GateName)
	patience := unix.NsecToTimeval(int64(milliseconds) * time.Millisecond.Nanoseconds())
	err = errors.Join(
		unix.Connect(s, &unix.SockaddrUnix{Name: path}),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
		unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience),
		unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16*wire.MaxMessage))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sink fumehood-gate: cannot prepare socket %q: %v", path, err), file.Close())
	}
	return file, nil
}

// newGate runs in the sandbox's kernel.
func newGate(config map[string]any, endpoint *fd.FD) (seccheck.Sink, error) {
	if endpoint == nil {
		return nil, errors.New("sink fumehood-gate: no socket")
	}
	if err := checkLayout(); err != nil {
		return nil, err
	}
	g := &gate{socket: endpoint, kept: map[string]kept{}, contents: map[fileKey]read{}, seen: map[uint64]struct{}{}}
	trees, _ := config["trees"].([]any)
	for _, t := range trees {
		if path, ok := t.(string); ok {
			g.trees = append(g.trees, path)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	if err := g.write(wire.Hello(nil, g.seq)); err != nil {
		return nil, err
	}
	return g, nil
}

// A gate asks the supervisor about every exec and tells it what processes do, over
// one socket, one message after the other. A message that cannot be sent breaks it:
// then every exec is refused, and what happens is counted as dropped.
type gate struct {
	seccheck.SinkDefaults
	trees []string

	mu     sync.Mutex // for everything that is sent, received and kept
	socket *fd.FD
	seq    uint64
	broken bool
	buf    []byte
	key    []byte
	kept   map[string]kept
	seen   map[uint64]struct{} // hashes of what was told in this generation

	lineages lineages
	room     room

	generation atomic.Uint32
	writes     atomic.Uint64
	processes  atomic.Uint64
	bytes      atomic.Uint64
	dropped    atomic.Uint64

	files    sync.Mutex // for what is known of files that cannot change
	contents map[fileKey]read
	stable   map[string]bool
}

// A kept is a Verdict that may be used again, and the message that it answered.
type kept struct {
	allow bool
	of    uint64
}

// Bounds of what the kernel keeps; beyond them it forgets, and asks or reads again.
const (
	keptMost    = 4096
	digestsMost = 4096
	seenMost    = 1 << 16
)

// Name implements seccheck.Sink.
func (*gate) Name() string { return GateName }

// Stop implements seccheck.Sink. A session that is deleted takes its gate with it;
// the socket's end tells the supervisor.
func (g *gate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
	_ = g.socket.Close()
}

// Status implements seccheck.Sink. The supervisor asks for it over the control
// socket after it has sent an Order, so an Order is obeyed at a known time, and by a
// kernel that runs no command: the Mark is the last word about a command.
func (g *gate) Status() seccheck.SinkStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.broken && g.readable() {
		g.obey()
	}
	return seccheck.SinkStatus{DroppedCount: g.dropped.Load()}
}

func (g *gate) obey() {
	h, body, err := g.read()
	if err != nil {
		return
	}
	order, err := wire.DecodeOrder(body)
	if err != nil || h.Kind != wire.KindOrder {
		g.breaks(Protocol)
		return
	}
	mark := wire.Mark{Token: order.Token, Generation: g.generation.Load(), Writes: g.writes.Load(),
		Processes: g.processes.Load(), Bytes: g.bytes.Load(), Dropped: g.dropped.Load()}
	if order.Generation != g.generation.Load() {
		g.generation.Store(order.Generation)
		g.writes.Store(0)
		g.processes.Store(0)
		g.bytes.Store(0)
		clear(g.kept)
		clear(g.seen)
		g.lineages.begin(order.First)
		if err := g.room.set(order.Memory, order.Disk); err != nil {
			g.breaks(Protocol)
			return
		}
	}
	g.seq++
	_ = g.write(mark.Append(g.buf[:0], g.seq))
}
