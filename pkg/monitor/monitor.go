// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package monitor is the supervisor's end of what gVisor's kernel sees: the exec gate
// and the record of what happened.
//
// A Monitor listens on one socket for one connection, that of the sandbox's kernel
// (package sentry; the bytes are package wire's). It answers every exec with what
// Options.Exec decides and hands every event to Options.Event, in order. What it
// promises:
//
//   - It fails closed. Nothing is allowed but by an answer of Options.Exec to this
//     exec, or by one to the same files within the same command that said it may be
//     used again. Outside a command everything is refused.
//   - Any doubt about the connection (a message that does not decode, a number out of
//     order, an answer that takes too long, an end that was not expected) ends it for
//     good: the kernel refuses every exec from then on, Failed tells the sandbox, and
//     the error has a stable code.
//   - Whatever the other end sends, it uses memory for one message and for a bounded
//     number of answers that are kept. It reads on only when Event has returned, so a
//     flood makes the sandbox slow and not this process large; and a command that
//     causes more than Options.Events is ended.
//
// # Codes
//
//	gate.slow      Options.Exec did not answer in time, or the kernel's patience ended
//	gate.gone      the kernel closed the connection while the sandbox lived
//	gate.protocol  it said what it may not
//	gate.start     the sink is not in force, or somebody else connected
//
// # What it does not protect against
//
// A sandbox's kernel that was broken into can say that nothing happened. It is
// outside the promises, as it is for gVisor; what holds then are the limits, the
// absent network and the absent credentials.
package monitor

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/monitor/calls"
	"github.com/fumehood/fumehood/pkg/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// SinkName is that of the sink in gVisor's kernel.
const SinkName = "fumehood-gate"

// Options say who decides and who is told. The zero Options allow everything and
// tell nobody.
type Options struct {
	// Exec decides. nil allows everything.
	Exec func(proposal.Exec) proposal.ExecDecision
	// AnswerWithin bounds Exec; it must be positive when there is one.
	AnswerWithin time.Duration
	// Patience is how long the kernel may take to read an answer, which it does at
	// once, and to obey an Order; 0 is a minute.
	Patience time.Duration
	// Event is told, one event at a time. nil is told nothing.
	Event func(proposal.Event)
	// Events is how many a command may cause; Flood is called once when it causes more.
	Events int
	Flood  func()
	// Stray is called when a process of the decided text itself connects to a network
	// address: shells do that for redirections to /dev/tcp, of which no text is allowed
	// one, and launchers never. It must end the command.
	Stray func(proposal.Event)
	// Same names the programs of the root file system with this content.
	Same func(size uint64, digest string) []string
	// Linked names the hard links of a program of the root file system, where it has
	// so many that it must be many tools in one.
	Linked func(path string) []string
	// Init is the path of the sandbox's own first program. What it becomes, and was
	// not started by another process, is a command's first.
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

	telling sync.Mutex // one event at a time

	mu       sync.Mutex
	command  *Command
	orders   uint64
	waiting  chan wire.Mark // of the Order that was sent last
	token    uint64
	sequence uint64 // of the last message read; the reader's alone
}

// A Command is what execs and events belong to while it runs.
type Command struct {
	ID     string
	Grants []string
	// Env is the environment that its first process is started with, NAME=value each.
	Env []string
	// Program says that its first process is a program which was decided by itself, not
	// a shell or a launcher, and that nothing stands between it and its start.
	Program bool
	// Memory is what its programs see as the machine's, and Disk what it may write beside
	// what earlier commands wrote.
	Memory, Disk proposal.Bytes

	base       map[string]string // Env
	generation uint32
	events     int
	untold     int
	kept       map[uint64]remembered
}

type remembered struct {
	decision proposal.ExecDecision
	key      string
}

// Listen opens the socket at path, in a folder that nobody else can look into.
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
	return &Monitor{o: o, listener: listener, ready: make(chan struct{}), failed: make(chan struct{})}, nil
}

// Points are the points of the trace session that the sink wants.
func Points() []string {
	points := []string{"sentry/execve", "sentry/clone", "sentry/task_exit"}
	for _, sysno := range slices.Sorted(maps.Keys(calls.Table)) {
		points = append(points, fmt.Sprintf("syscall/sysno/%d/exit", sysno))
	}
	return points
}

// Failed is closed when the connection has ended or is no longer believed.
func (m *Monitor) Failed() <-chan struct{} { return m.failed }

// Err says why Failed was closed: a *proposal.StopError.
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
	m.fail("gate.gone", "the gate was closed", nil)
	return m.listener.Close()
}

func (m *Monitor) fail(code, message string, err error) {
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
	"gate.slow":     "look at what the policy does for each exec; a host without a free processor is slow too",
	"gate.gone":     "run the command alone to see whether it crashes the sandbox",
	"gate.protocol": "use the fumehood-runsc of this version; if it is, the sandbox may have been broken out of",
	"gate.start":    "use the fumehood-runsc of this version",
}
