// SPDX-License-Identifier: Apache-2.0

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
	"gvisor.dev/gvisor/pkg/sentry/vfs"

	"github.com/fumehood/fumehood/internal/kit/frame"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// GateName is the name of the sink that asks for decisions and reports events. Its
// configuration must have "socket", the path of the supervisor's socket, and
// "patience", the number of milliseconds that the kernel waits for the supervisor. It
// may have "trees", the directories of the overlays that the sandbox's init made, and "pod",
// which is true for a sandbox that has the containers of a pod: see containerHomes.
const GateName = "fumehood-gate"

// What the sink Name reports about the sink GateName: the reason why it refuses
// everything from then on.
const (
	Slow     = 's' // the supervisor did not read or answer a message in time
	Gone     = 'g' // its socket was closed
	Protocol = 'x' // it sent an invalid message
)

func init() {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: GateName, Setup: setupGate, New: newGate})
}

// setupGate runs on the host, in the process that creates the sandbox. It prepares all
// that the sandbox's kernel needs of the socket, because that kernel's own seccomp
// filter lets it only read and write.
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
	if err := errors.Join(checkLayout(), checkCalls(), checkMappings()); err != nil {
		return nil, err
	}
	g := &execGate{socket: endpoint, kept: map[string]kept{}, contents: map[fileKey]read{}, shared: map[inode]bool{},
		seen: map[uint64]struct{}{}, programs: map[*vfs.Dentry]bool{}, lineages: newLineages()}
	if pod, _ := config["pod"].(bool); pod {
		g.pod = &containerHomes{homes: map[string]containerHome{}}
	}
	trees, _ := config["trees"].([]any)
	for _, t := range trees {
		if path, ok := t.(string); ok {
			g.trees = append(g.trees, path)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seq++
	if err := g.writeMessage(wire.AppendHello(nil, g.seq)); err != nil {
		return nil, err
	}
	active.Store(g)
	return g, nil
}

// An execGate asks the supervisor about every exec and reports what processes do, over one
// socket, one message after the other. A message that cannot be sent breaks it: then
// every exec is refused, and events are counted as dropped.
type execGate struct {
	seccheck.SinkDefaults
	trees []string
	pod   *containerHomes // nil for a sandbox that init made

	changes sync.Mutex // for a change of names in a command that must not change control places

	mu     sync.Mutex // for everything that is sent, received and kept
	socket *fd.FD
	seq    uint64
	broken bool
	buf    []byte
	key    []byte
	order  *wire.Order // that came while a verdict was awaited
	kept   map[string]kept
	seen   map[uint64]struct{} // hashes of what was reported, since a generation began

	lineages *lineages
	capacity capacity
	dropped  atomic.Uint64
	record   readRecord // of what was read of the workspace
	mapped   mappedFiles

	files    sync.Mutex // for what is known about files
	contents map[fileKey]read
	shared   map[inode]bool // those that can change without a new time of change
	// sharedBefore says that there were some when the sandbox was saved: any file may be one.
	sharedBefore bool
	stable       map[string]bool
	programs     map[*vfs.Dentry]bool // of the read-only root: whether it is a program, and not a library
}

// A kept is a reusable Verdict and the message that it answered.
type kept struct {
	allow bool
	of    uint64
}

// Limits on what the kernel keeps. Beyond them it forgets, and asks or reads again.
const (
	maxKept    = 4096
	maxDigests = 4096
	maxSeen    = 1 << 16
)

// Name implements seccheck.Sink.
func (*execGate) Name() string { return GateName }

// Stop implements seccheck.Sink. Deleting a session also ends its gate; the closed
// socket notifies the supervisor.
func (g *execGate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
	_ = g.socket.Close()
}

// Status implements seccheck.Sink. The supervisor requests it over the control socket
// after it has sent an Order. So an Order is obeyed at a known time, even by a kernel
// that runs no command, and the Mark is the last message about a command.
func (g *execGate) Status() seccheck.SinkStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.broken && g.isReadable() {
		g.readOrder()
	}
	return seccheck.SinkStatus{DroppedCount: g.dropped.Load()}
}

func (g *execGate) readOrder() {
	h, body, err := g.readMessage()
	if err != nil {
		return
	}
	if order, ok := g.orderOf(h, body); ok {
		g.answerOrder(order)
	}
}

// orderOf decodes an Order. If it is none, the gate breaks.
func (g *execGate) orderOf(h frame.Header[wire.Kind], body []byte) (wire.Order, bool) {
	order, err := wire.DecodeOrder(body)
	if err != nil || h.Kind != wire.KindOrder {
		g.breakGate(Protocol)
		return wire.Order{}, false
	}
	return order, true
}

// answerOrder carries out an Order and sends the Mark.
func (g *execGate) answerOrder(order wire.Order) {
	of, alive, stopping, err := g.carryOut(order)
	if err != nil {
		g.breakGate(Protocol)
		return
	}
	mark := wire.Mark{Token: order.Token, Generation: of.number, Alive: alive, Stopping: stopping,
		Writes: of.writes.Load(), Processes: of.processes.Load(), Bytes: of.bytes.Load(), Dropped: g.dropped.Load()}
	if order.Act == wire.ActReads {
		for _, part := range g.record.takeReads(order.Until) {
			g.seq++
			_ = g.writeMessage(part.Append(g.buf[:0], g.seq))
		}
	}
	g.seq++
	_ = g.writeMessage(mark.Append(g.buf[:0], g.seq))
}

// carryOut does what an Order asks for.
func (g *execGate) carryOut(o wire.Order) (of *generation, alive, stopping uint32, err error) {
	k := g.capacity.kernel.Load()
	switch o.Act {
	case wire.ActBegin:
		clear(g.kept)
		clear(g.seen)
		if of, err = g.lineages.beginGeneration(o); err == nil {
			err = g.capacity.setLimits(o.Memory, o.Disk)
		}
	case wire.ActDetach:
		of, err = g.lineages.detachGeneration(k, o)
	case wire.ActSignal, wire.ActEnd:
		of, alive, err = g.lineages.signalGeneration(k, o)
		return of, alive, 0, err
	case wire.ActHold:
		return g.lineages.holdGeneration(k, o)
	case wire.ActSave:
		if of, err = g.lineages.findGeneration(o); err == nil {
			alive, err = g.prepareSave(k)
		}
		return of, alive, 0, err
	default:
		of, err = g.lineages.findGeneration(o)
	}
	return of, 0, 0, err
}
