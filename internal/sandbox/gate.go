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

// An execGate is the exec gate and the monitor of one sandbox. Its methods do nothing on
// nil, which a sandbox with Options.UnwatchedUnsafe has.
type execGate struct {
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

func newGate(s *instance) (*execGate, error) {
	if !s.o.isWatched() {
		return nil, nil
	}
	// In the directory with the short path: a socket's path has at most 107 bytes.
	g := &execGate{s: s, path: filepath.Join(s.root.Path, "gate"), reported: map[byte]bool{}}
	g.same.roots = s.o.newReadOnlyRoot()
	var err error
	g.monitor, err = monitor.Listen(g.path, monitor.Options{
		Exec: s.owner.askRunner, AnswerWithin: s.o.answerWithin, Patience: s.o.patience, Event: s.owner.reportEvent,
		Events: g.eventBudget(),
		Same:   g.same.namesOfContent, Linked: g.same.hardLinks, Init: guest.Init,
	})
	if err != nil {
		return nil, err
	}
	s.onClose(g.close)
	return g, nil
}

func (g *execGate) eventBudget() int {
	if g.s.o.Events > 0 {
		return g.s.o.Events
	}
	return DefaultEvents
}

// endForFlood ends a command that causes too many events.
func (c *command) endForFlood() {
	c.flood.Store(true)
	c.endFor(proposal.OutputLimit)
}

// endForShellNetwork ends a command whose own shell connects to the network.
func (c *command) endForShellNetwork(e proposal.Event) {
	c.endKilledBy(proposal.KilledConnect,
		"killed: the command's shell connected to "+e.Address+", which is not in a redirection that policy decided")
}

func (g *execGate) socketPath() string {
	if g == nil {
		return ""
	}
	return g.path
}

func (g *execGate) serveMonitor(pid int) {
	if g != nil {
		go g.monitor.Serve(pid, startGrace)
	}
}

func (g *execGate) waitUntilReady() error {
	if g == nil {
		return nil
	}
	var err error
	if g.nudges, err = control.Dial(g.s.controlSocketPath()); err != nil {
		return err
	}
	return g.monitor.Ready(startGrace)
}

func (g *execGate) close() error {
	err := g.monitor.Close()
	if g.nudges != nil {
		_ = g.nudges.Close() // its other end is gone
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (g *execGate) failedChan() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.monitor.Failed()
}

// nudgeKernel makes the kernel read what the monitor sent: a request for the sessions' state
// asks every sink for its own state. A kernel whose gate has given up never obeys.
func (g *execGate) nudgeKernel() error {
	if _, err := g.nudges.TraceSessions(); err != nil {
		return err
	}
	if g.reportedLimits(); g.givenUp() {
		return monitor.ErrGivenUp
	}
	return nil
}

// reportedLimits returns what the kernel has reported on the FIFO since the last command in the
// foreground began.
func (g *execGate) reportedLimits() map[byte]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.Copy(g.reported, g.s.watch.reportedLimits())
	return maps.Clone(g.reported)
}

// clearReports forgets what was reported about the limits of earlier commands.
func (g *execGate) clearReports() {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reported, sinkPids)
	delete(g.reported, sinkDisk)
}

// givenUp reports whether the kernel has reported that it refuses everything.
func (g *execGate) givenUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reported[sinkSlow] || g.reported[sinkGone] || g.reported[sinkProtocol]
}

// beginCommand makes c the one that new processes belong to. None may start a program before startCommand.
func (g *execGate) beginCommand(c *command) error {
	if g == nil {
		return nil
	}
	c.facts = &monitor.Command{ID: c.x.ID, Grants: c.x.Grant.Exec, Env: c.environ(), Program: c.isPlainProgram(),
		Free: c.x.Free, Waits: true,
		Memory: c.x.Grant.Limits.Memory, Disk: c.x.Grant.Limits.Disk, Flood: c.endForFlood, Stray: c.endForShellNetwork}
	err := g.monitor.Begin(c.facts, g.nudgeKernel)
	if g.clearReports(); err == nil {
		return nil
	}
	if why := g.failureReason(err); why != nil {
		return why
	}
	return newStopError("sandbox.crashed", "the sandbox ended between two commands"+g.s.runscOutput(),
		"run fumehood doctor", err)
}

func (g *execGate) startCommand(c *command) {
	if g != nil {
		g.monitor.Start(c.facts)
	}
}

// endCommand gets the kernel's last message about a command with no processes left, and fills
// in what the sandbox knows about the command. An error means that the gate has failed.
func (g *execGate) endCommand(c *command, r *proposal.Result) error {
	if g == nil {
		return nil
	}
	mark, err := g.monitor.End(c.facts, g.nudgeKernel)
	return g.recordMark(c, r, mark, err)
}

// recordMark fills in what the kernel's last message says.
func (g *execGate) recordMark(c *command, r *proposal.Result, mark wire.Mark, err error) error {
	r.Observations = &proposal.Observations{}
	if err != nil {
		return g.failureReason(err)
	}
	r.Observations.Counts.Dropped = int(mark.Dropped)
	r.Observations.Complete = mark.Dropped == 0
	c.recordKernelCounts(mark.Processes, mark.Bytes)
	return nil
}

// failureReason returns why the gate failed: the monitor's own error, or the kernel's reason to
// give up on the monitor. It returns nil if the whole sandbox died: the closed socket
// is then not the cause.
func (g *execGate) failureReason(err error) error {
	for end := time.Now().Add(fallGrace); !g.s.isDead() && g.isFailureUnexplained() &&
		time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		g.reportedLimits()
	}
	reported := g.reportedLimits()
	switch {
	case g.s.isDead():
		return nil
	case reported[sinkSlow]:
		return newStopError("gate.slow", "the sandbox's kernel waited too long for the exec gate",
			"check what else runs on this host", err)
	case reported[sinkProtocol]:
		return newStopError("gate.protocol", "the sandbox's kernel does not understand the exec gate",
			"use the fumehood-runsc of this version", err)
	case g.monitor.Err() != nil:
		return g.monitor.Err()
	}
	return newStopError("gate.gone", "the sandbox's kernel does not communicate with the exec gate",
		"run fumehood doctor", err)
}

// isFailureUnexplained reports whether only the sandbox's death would explain why the gate
// failed. The death may be noticed later than the end of the connection.
func (g *execGate) isFailureUnexplained() bool {
	var fallen *proposal.StopError
	return !g.givenUp() && (!errors.As(g.monitor.Err(), &fallen) || fallen.Code == "gate.gone")
}
