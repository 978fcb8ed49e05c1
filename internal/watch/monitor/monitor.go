// SPDX-License-Identifier: Apache-2.0

// Package monitor is the supervisor's end of the connection to gVisor's kernel: the exec
// gate and the record of events.
//
// A Monitor listens on one socket for one connection, that of the sandbox's kernel
// (package sentry; the bytes are package wire's). It answers every exec with the decision
// of Options.Exec and passes every event to Options.Event, in order. Its guarantees:
//
//   - It fails closed. An exec is allowed only by an answer of Options.Exec to this
//     exec, or by a reusable one to the same files within the same command.
//     Outside a command everything is refused.
//   - Several commands may run at once: one that Begin and End enclose, and up to
//     wire.MaxGenerations that were detached from it. The kernel knows which command each
//     process belongs to, from its first process on and through every fork, and refuses
//     forks and execs of a command that was killed. What it reports about a command that has
//     ended a moment ago is reported as that command's, and never answered with an allow;
//     anything about a command that is not known ends the connection.
//   - Any doubt about the connection (a message that does not decode, a number out of
//     order, an answer that takes too long, an unexpected end) ends it permanently:
//     the kernel refuses every exec from then on, Failed notifies the sandbox, and
//     the error has a stable code.
//   - Whatever the other end sends, memory is used for one message and a bounded
//     number of kept answers. The next message is read only after Event returns, so a
//     flood slows the sandbox down and does not grow this process. A command that
//     causes more than Options.Events events is ended.
//
// # Codes
//
//	gate.slow      Options.Exec did not answer in time, or the kernel's time limit passed
//	gate.gone      the kernel closed the connection while the sandbox lived
//	gate.protocol  it sent an invalid message
//	gate.start     the sink is not active, or another process connected
//
// # What it does not protect against
//
// A compromised sandbox kernel can report that nothing happened. That is outside the
// guarantees, as it is for gVisor. What still protects then are the limits and the
// absence of network and credentials.
package monitor

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/watch/monitor/calls"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// SinkName is the name of the sink in gVisor's kernel.
const SinkName = "fumehood-gate"

// Options configure who decides and who receives events. The zero Options allow
// everything and report nothing.
type Options struct {
	// Exec decides an exec. nil allows everything.
	Exec func(proposal.Exec) proposal.ExecDecision
	// AnswerWithin bounds Exec; it must be positive if Exec is set.
	AnswerWithin time.Duration
	// Patience is how long the kernel may take to read an answer, which it normally does
	// at once, and to carry out an Order; 0 means a minute.
	Patience time.Duration
	// Event receives one event at a time. It may be nil.
	Event func(proposal.Event)
	// Events is the maximum number for a command: see Command.Flood.
	Events int
	// Same returns the programs of the root file system with this content.
	Same func(size uint64, digest string) []string
	// Linked returns the hard links of a program of the root file system, if it has so
	// many that it must be many tools in one.
	Linked func(path string) []string
	// Init is the path of the sandbox's own first program. A program that Init execs, in
	// a process not started by another process, is a command's first.
	Init string
}

// A Monitor serves one sandbox.
type Monitor struct {
	o        Options
	listener *net.UnixListener

	ready  chan struct{} // closed: the kernel has said Hello
	failed chan struct{} // closed: see Err
	once   sync.Once
	err    error
	conn   *conn // set before ready is closed

	telling  sync.Mutex // one event at a time
	ordering sync.Mutex // one Order at a time

	mu         sync.Mutex
	living     map[uint32]*Command // by generation: those that have begun and not ended
	ended      []*Command          // the last ones that have ended: only what identifies them
	none       Command             // what processes belong to that belong to no command
	generation uint32              // the newest
	waiting    chan wire.Mark      // for the last Order sent
	token      uint64
	asked      uint32      // its generation
	recorded   *wire.Reads // while Reads waits for them
	sequence   uint64      // number of the last message read; used only by the reader
}

// maxEnded is how many commands that have ended are remembered.
const maxEnded = 64

// A Command is the command that execs and events belong to while it runs.
type Command struct {
	ID     string
	Grants []string
	// Env is the environment of its first process, NAME=value each. nil means that with which
	// Options.Init starts its first program.
	Env []string
	// Program means that its first process is a program that was decided itself, not a
	// shell or a launcher, and that nothing runs between the decision and its start.
	Program bool
	// Free means that what such a program starts is not decided one by one.
	Free bool
	// Waits means that no program is allowed before Monitor.Start: the log may not have the command's start yet.
	Waits bool
	// Memory is the machine's memory as its programs see it, and Disk what it may write
	// in addition to what earlier commands wrote.
	Memory, Disk proposal.Bytes

	// Flood, if set, is called once when the command causes more than Options.Events events.
	Flood func()
	// Stray, if set, is called when a process of the decided text itself connects to a
	// network address. Shells do that for redirections to /dev/tcp, which are never allowed;
	// launchers never do. Stray must end the command.
	Stray func(proposal.Event)

	base       map[string]string // Env
	generation uint32
	events     int
	untold     int
	kept       map[uint64]rememberedAnswer

	killing sync.Mutex // held by Signal, and by Kill, which sets killed
	killed  *wire.Mark // the kernel's message that none of its processes is left
}

type rememberedAnswer struct {
	decision proposal.ExecDecision
	key      string
}

// Listen opens the socket at path, which must be in a private directory.
func Listen(path string, o Options) (*Monitor, error) {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the sandbox's kernel: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	return &Monitor{o: o, listener: listener, ready: make(chan struct{}), failed: make(chan struct{}),
		living: map[uint32]*Command{}}, nil
}

// TracePoints returns the points of the trace session that the sink needs.
func TracePoints() []string {
	points := []string{"sentry/execve", "sentry/clone", "sentry/task_exit"}
	for _, sysno := range slices.Sorted(maps.Keys(calls.Table)) {
		points = append(points, fmt.Sprintf("syscall/sysno/%d/exit", sysno))
	}
	return points
}

// Failed is closed when the connection has ended or is no longer trusted.
func (m *Monitor) Failed() <-chan struct{} { return m.failed }

// Err returns why Failed was closed: a *proposal.StopError.
func (m *Monitor) Err() error {
	select {
	case <-m.failed:
		return m.err
	default:
		return nil
	}
}

// Close ends the connection.
func (m *Monitor) Close() error {
	m.failMonitor("gate.gone", "the gate was closed", nil)
	return m.listener.Close()
}

func (m *Monitor) failMonitor(code, message string, err error) {
	m.once.Do(func() {
		m.err = &proposal.StopError{Code: code, Message: message, Hint: hints[code], Err: err}
		close(m.failed)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.conn != nil {
			m.conn.hangUp()
		}
	})
}

var hints = map[string]string{
	"gate.slow":     "check what the policy does for each exec, and whether the host is overloaded",
	"gate.gone":     "run the command alone to see whether it crashes the sandbox",
	"gate.protocol": "use the fumehood-runsc of this version; if you do, a command may have escaped the sandbox",
	"gate.start":    "use the fumehood-runsc of this version",
}
