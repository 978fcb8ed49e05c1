// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox/control"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/watch/monitor"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A gate is the exec gate and the monitor of one sandbox. Its methods do nothing on
// nil, which a sandbox with Options.UnwatchedUnsafe has.
type gate struct {
	s        *instance
	monitor  *monitor.Monitor
	path     string
	same     sameIndex
	nudges   *control.Conn
	reported map[byte]bool // reported by the kernel about the gate, on the FIFO

	mu sync.Mutex // for reported
}

// errRefused means that the first program of a command was refused.
var errRefused = errors.New("policy refuses the program")

func newGate(s *instance) (*gate, error) {
	if !s.o.watched() {
		return nil, nil
	}
	// In the directory with the short path: a socket's path has at most 107 bytes.
	g := &gate{s: s, path: filepath.Join(s.root.Path, "gate"), reported: map[byte]bool{}}
	g.same.roots = s.o.root()
	var err error
	g.monitor, err = monitor.Listen(g.path, monitor.Options{
		Exec: s.owner.exec, AnswerWithin: s.o.answerWithin, Patience: s.o.patience, Event: s.owner.event, Events: g.budget(),
		Same: g.same.names, Linked: g.same.linked, Init: guest.Init,
	})
	if err != nil {
		return nil, err
	}
	s.onClose(g.close)
	return g, nil
}

func (g *gate) budget() int {
	if g.s.o.Events > 0 {
		return g.s.o.Events
	}
	return DefaultEvents
}

// flooded ends a command that causes too many events.
func (c *command) flooded() {
	c.flood.Store(true)
	c.end(proposal.OutputLimit)
}

// strayed ends a command whose own shell connects to the network.
func (c *command) strayed(e proposal.Event) {
	c.kills(proposal.KilledConnect, "killed: the command's shell connected to "+e.Address+", which is not in a redirection that policy decided")
}

func (g *gate) socket() string {
	if g == nil {
		return ""
	}
	return g.path
}

func (g *gate) serve(pid int) {
	if g != nil {
		go g.monitor.Serve(pid, startGrace)
	}
}

func (g *gate) ready() error {
	if g == nil {
		return nil
	}
	var err error
	if g.nudges, err = control.Dial(g.s.socket()); err != nil {
		return err
	}
	return g.monitor.Ready(startGrace)
}

func (g *gate) close() error {
	err := g.monitor.Close()
	if g.nudges != nil {
		_ = g.nudges.Close() // its other end is gone
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (g *gate) failed() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.monitor.Failed()
}

// nudge makes the kernel read what the monitor sent: a request for the sessions' state
// asks every sink for its own state. A kernel whose gate has given up never obeys.
func (g *gate) nudge() error {
	if _, err := g.nudges.TraceSessions(); err != nil {
		return err
	}
	if g.hits(); g.givenUp() {
		return monitor.ErrGivenUp
	}
	return nil
}

// hits returns what the kernel has reported on the FIFO since the last command in the
// foreground began.
func (g *gate) hits() map[byte]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.Copy(g.reported, g.s.watch.hits())
	return maps.Clone(g.reported)
}

// forget forgets what was reported about the limits of earlier commands.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reported, sinkPids)
	delete(g.reported, sinkDisk)
}

// givenUp reports whether the kernel has reported that it refuses everything.
func (g *gate) givenUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reported[sinkSlow] || g.reported[sinkGone] || g.reported[sinkProtocol]
}

func (g *gate) begin(c *command) error {
	if g == nil {
		return nil
	}
	c.facts = &monitor.Command{ID: c.x.ID, Grants: c.x.Grant.Exec, Env: c.env(), Program: c.program(), Free: c.x.Free,
		Memory: c.x.Grant.Limits.Memory, Disk: c.x.Grant.Limits.Disk, Flood: c.flooded, Stray: c.strayed}
	err := g.monitor.Begin(c.facts, g.nudge)
	if g.forget(); err == nil {
		return nil
	}
	if why := g.why(err); why != nil {
		return why
	}
	return stop("sandbox.crashed", "the sandbox ended between two commands"+g.s.said(), "run fumehood doctor", err)
}

// end gets the kernel's last message about a command with no processes left, and fills
// in what the sandbox knows about the command. An error means that the gate has failed.
func (g *gate) end(c *command, r *proposal.Result) error {
	if g == nil {
		return nil
	}
	mark, err := g.monitor.End(c.facts, g.nudge)
	return g.ended(c, r, mark, err)
}

// ended fills in what the kernel's last message says.
func (g *gate) ended(c *command, r *proposal.Result, mark wire.Mark, err error) error {
	r.Observations = &proposal.Observations{}
	if err != nil {
		return g.why(err)
	}
	r.Observations.Counts.Dropped = int(mark.Dropped)
	r.Observations.Complete = mark.Dropped == 0
	c.marked(mark.Processes, mark.Bytes)
	return nil
}

// why returns why the gate failed: the monitor's own error, or the kernel's reason to
// give up on the monitor. It returns nil if the whole sandbox died: the closed socket
// is then not the cause.
func (g *gate) why(err error) error {
	for end := time.Now().Add(fallGrace); !g.s.dead() && g.unexplained() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		g.hits()
	}
	reported := g.hits()
	switch {
	case g.s.dead():
		return nil
	case reported[sinkSlow]:
		return stop("gate.slow", "the sandbox's kernel waited too long for the exec gate", "check what else runs on this host", err)
	case reported[sinkProtocol]:
		return stop("gate.protocol", "the sandbox's kernel does not understand the exec gate", "use the fumehood-runsc of this version", err)
	case g.monitor.Err() != nil:
		return g.monitor.Err()
	}
	return stop("gate.gone", "the sandbox's kernel does not communicate with the exec gate", "run fumehood doctor", err)
}

// unexplained reports whether only the sandbox's death would explain why the gate
// failed. The death may be noticed later than the end of the connection.
func (g *gate) unexplained() bool {
	var fallen *proposal.StopError
	return !g.givenUp() && (!errors.As(g.monitor.Err(), &fallen) || fallen.Code == "gate.gone")
}
