// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
)

// defaultPatience is far more than a live kernel needs, even on a fully loaded host.
const defaultPatience = time.Minute

// drainGrace is how long the end of a command waits to receive what a dead sandbox
// had already sent.
const drainGrace = 10 * time.Second

// Serve accepts the connection of process pid, within grace, and serves it until it
// ends; Err returns why it ended. A connection from any other process ends the
// Monitor, and a second connection is never accepted.
func (m *Monitor) Serve(pid int, grace time.Duration) {
	m.serveConn(func(from unix.Ucred) bool { return int(from.Pid) == pid }, grace)
}

// ServeUser is Serve for any process of this user, of which no other may reach the socket: the
// process that creates a sandbox connects for it, and may have ended before anything can be
// found out about it.
func (m *Monitor) ServeUser(grace time.Duration) {
	m.serveConn(func(from unix.Ucred) bool { return int(from.Uid) == os.Geteuid() }, grace)
}

func (m *Monitor) serveConn(known func(unix.Ucred) bool, grace time.Duration) {
	_ = m.listener.SetDeadline(time.Now().Add(grace))
	accepted, err := m.listener.AcceptUnix()
	_ = m.listener.Close()
	if err != nil {
		m.failMonitor("gate.start", "the sandbox's kernel does not connect to its gate", err)
		return
	}
	if from, err := peer.CredentialsOf(accepted); err != nil || !known(from) {
		_ = accepted.Close()
		m.failMonitor("gate.start", fmt.Sprintf("process %d, which is not the sandbox's, connected to the gate",
			from.Pid), err)
		return
	}
	c, err := newConn(accepted, m.o.Patience)
	if err != nil {
		m.failMonitor("gate.start", "cannot use the gate's connection", err)
		return
	}
	m.mu.Lock()
	m.conn = c
	m.mu.Unlock()
	defer c.close()
	if m.Err() != nil {
		return
	}
	buf := make([]byte, wire.MaxMessage+1)
	for m.handleNext(buf) {
	}
}

// handleNext reads and handles one message.
func (m *Monitor) handleNext(buf []byte) bool {
	n, err := m.conn.readMessage(buf)
	if err != nil {
		m.failMonitor("gate.gone", "the sandbox's kernel closed its gate", err)
		return false
	}
	if err := m.handleMessage(buf[:n]); err != nil {
		m.failMonitor("gate.protocol", "the sandbox's kernel violates the gate's protocol", err)
		return false
	}
	return m.Err() == nil
}

func (m *Monitor) handleMessage(message []byte) error {
	h, body, err := wire.Open(message)
	if err != nil {
		return err
	}
	if m.sequence++; h.Seq != m.sequence {
		return fmt.Errorf("message %d instead of %d", h.Seq, m.sequence)
	}
	if first := h.Seq == 1; first != (h.Kind == wire.KindHello) || first && len(body) > 0 {
		return errors.New("the first message, and only it, must be a greeting")
	}
	switch h.Kind {
	case wire.KindHello:
		close(m.ready)
		return nil
	case wire.KindExec:
		e, err := wire.DecodeExec(body)
		if err != nil {
			return err
		}
		return m.answerExec(h.Seq, &e)
	case wire.KindEvent:
		e, err := wire.DecodeEvent(body)
		if err != nil {
			return err
		}
		return m.handleEvent(&e)
	case wire.KindMark:
		mark, err := wire.DecodeMark(body)
		if err != nil {
			return err
		}
		return m.handleMark(mark)
	case wire.KindReads:
		reads, err := wire.DecodeReads(body)
		if err != nil {
			return err
		}
		return m.collectReads(reads)
	}
	return fmt.Errorf("message of kind %d", h.Kind)
}

// Ready waits until the kernel has reported that its sink is active.
func (m *Monitor) Ready(grace time.Duration) error {
	select {
	case <-m.ready:
		return nil
	case <-m.failed:
		return m.err
	case <-time.After(grace):
		m.failMonitor("gate.start", "the sandbox's kernel did not send its greeting", nil)
		return m.err
	}
}

// ErrGivenUp is returned by a nudge when the kernel has reported that it refuses
// everything from now on: it is alive, but will never carry out an Order.
var ErrGivenUp = errors.New("the sandbox's kernel has given up its gate")

// Begin makes c the command that processes belong to from now on, except for those of
// detached commands. nudge must make the kernel look for an Order, and return once it has.
func (m *Monitor) Begin(c *Command, nudge func() error) error {
	m.mu.Lock()
	m.generation++
	c.generation, c.kept = m.generation, map[uint64]rememberedAnswer{}
	if c.Env != nil {
		c.base = byName(c.Env)
	}
	m.living[c.generation] = c
	m.mu.Unlock()
	o := c.orderFor(wire.ActBegin)
	o.First, o.Memory, o.Disk = c.firstLineage(), uint64(c.Memory), uint64(c.Disk)
	o.Control = slices.Contains(c.Grants, points.ExecBuilt)
	_, err := m.sendOrder(o, nudge)
	return err
}

// Start ends what Command.Waits says of c.
func (m *Monitor) Start(c *Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Waits = false
}

func (c *Command) orderFor(a wire.Act) wire.Order {
	return wire.Order{Act: a, Generation: c.generation}
}

// Detach lets c, which Begin was called for last, go on in the background: its first
// process, pid, and all that descends from it. If pid is 0, it is every process that belongs to
// no other command; one must have made another thread or process before. Another command may begin then. c must be
// ended by Kill and End.
func (m *Monitor) Detach(c *Command, pid int32, nudge func() error) error {
	o := c.orderFor(wire.ActDetach)
	o.Pid = pid
	_, err := m.sendOrder(o, nudge)
	return err
}

// Signal sends a signal to all processes of c, which was detached, or to pid only if it is not 0. It does nothing if
// Kill has found that none is left, or after Hold.
func (m *Monitor) Signal(c *Command, pid, signal int32, nudge func() error) error {
	c.killing.Lock()
	defer c.killing.Unlock()
	if c.killed != nil {
		return nil
	}
	o := c.orderFor(wire.ActSignal)
	o.Pid, o.Signal = pid, signal
	_, err := m.sendOrder(o, nudge)
	return err
}

// Kill kills all processes of c, which was detached, and returns how many it found when none
// is left, and what was counted of them. It does not return while one is alive, except with
// an error or when c's sandbox has ended. Another call finds none, and does not ask the kernel,
// which forgets c when the next command begins.
func (m *Monitor) Kill(c *Command, nudge func() error, grace time.Duration) (found int, mark wire.Mark, err error) {
	return m.repeatOrder(c, c.orderFor(wire.ActEnd), nudge, grace)
}

// Hold is Kill, but its process pid and, unless alone, all that descends from it are only stopped. They belong to a
// later command when it is detached with that pid, or else to the one that Begin was called for last.
func (m *Monitor) Hold(
	c *Command, pid int32, alone bool, nudge func() error, grace time.Duration,
) (killed int, mark wire.Mark, err error) {
	o := c.orderFor(wire.ActHold)
	o.Pid, o.Alone = pid, alone
	return m.repeatOrder(c, o, nudge, grace)
}

// busyRounds is how often an order is repeated without a pause: most processes stop in less time than the shortest.
const busyRounds = 5

// repeatOrder sends an order that ends c until none of its processes runs, and returns how many it killed.
func (m *Monitor) repeatOrder(
	c *Command, o wire.Order, nudge func() error, grace time.Duration,
) (killed int, mark wire.Mark, err error) {
	c.killing.Lock()
	defer c.killing.Unlock()
	end := time.Now().Add(grace)
	for round := 0; c.killed == nil; round++ {
		if round > busyRounds {
			time.Sleep(time.Millisecond)
		}
		if mark, err = m.sendOrder(o, nudge); err != nil {
			return killed, mark, err
		}
		if mark.Alive == 0 {
			c.killed = &mark
		}
		if killed = max(killed, int(mark.Alive)-int(mark.Stopping)); c.killed == nil && time.Now().After(end) {
			return killed, mark, errors.New("processes are left after SIGKILL or SIGSTOP")
		}
	}
	return killed, *c.killed, nil
}

// End returns the kernel's last message about c, which was not detached. All the command's
// events have been reported when End returns; none of its processes may be left.
func (m *Monitor) End(c *Command, nudge func() error) (wire.Mark, error) {
	mark, err := m.sendOrder(c.orderFor(wire.ActCount), nudge)
	return m.EndWithMark(c, mark, err)
}

// EndWithMark ends c, of which mark and err are the kernel's last message. All the command's events
// have been reported when it returns.
func (m *Monitor) EndWithMark(c *Command, mark wire.Mark, err error) (wire.Mark, error) {
	if err != nil && !errors.Is(err, ErrGivenUp) {
		// If the sandbox died, what it had already sent is reported before the
		// reader reaches the end and fails.
		select {
		case <-m.failed:
		case <-time.After(drainGrace):
		}
	}
	m.telling.Lock()
	defer m.telling.Unlock()
	m.mu.Lock()
	delete(m.living, c.generation)
	m.ended = append(m.ended[max(0, len(m.ended)-maxEnded+1):], &Command{ID: c.ID, generation: c.generation})
	m.mu.Unlock()
	mark.Dropped += uint64(c.untold) // the reader, which counts it, has read the Mark after it
	return mark, err
}

// sendOrder sends an Order and returns the Mark that answers it.
func (m *Monitor) sendOrder(o wire.Order, nudge func() error) (wire.Mark, error) {
	m.ordering.Lock()
	defer m.ordering.Unlock()
	m.mu.Lock()
	m.token++
	waiting := make(chan wire.Mark, 1)
	o.Token, m.waiting, m.asked = m.token, waiting, o.Generation
	m.mu.Unlock()
	if err := m.sendMessage(o.Append(nil, o.Token)); err != nil {
		return wire.Mark{}, err
	}
	if err := nudge(); err != nil {
		return wire.Mark{}, err
	}
	timeout := time.NewTimer(m.o.Patience)
	defer timeout.Stop()
	select {
	case mark := <-waiting:
		return mark, nil
	case <-m.failed:
	case <-timeout.C:
		m.failMonitor("gate.slow", "the sandbox's kernel did not answer an order in time", nil)
	}
	return wire.Mark{}, m.Err()
}

func (m *Monitor) handleMark(mark wire.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil || mark.Token != m.token || mark.Generation != m.asked {
		return fmt.Errorf("mark %d was not asked for", mark.Token)
	}
	m.waiting <- mark
	m.waiting = nil
	return nil
}

// Reads returns what the kernel has recorded of the workspace's tree, and ends the recording. What
// was read for the first time after the first command with the id before began is Optional; nothing
// is if that command is not known. Its paths are untrusted.
func (m *Monitor) Reads(before string, nudge func() error) (wire.Reads, error) {
	m.mu.Lock()
	m.recorded = &wire.Reads{}
	o := wire.Order{Act: wire.ActReads, Generation: m.generation, Until: m.generation}
	for _, c := range slices.Backward(m.ended) { // the first one counts
		if c.ID == before {
			o.Until = c.generation - 1
		}
	}
	m.mu.Unlock()
	_, err := m.sendOrder(o, nudge)
	m.mu.Lock()
	defer m.mu.Unlock()
	reads := *m.recorded
	m.recorded = nil
	return reads, err
}

// PrepareSave makes the kernel ready to be saved by its control socket. It returns how many processes run, other than
// init: if there is one, the kernel is not ready. No command may run.
func (m *Monitor) PrepareSave(nudge func() error) (running int, err error) {
	m.mu.Lock()
	o := wire.Order{Act: wire.ActSave, Generation: m.generation}
	m.mu.Unlock()
	mark, err := m.sendOrder(o, nudge)
	return int(mark.Alive), err
}

// collectReads keeps a part of what Reads returns.
func (m *Monitor) collectReads(part wire.Reads) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recorded == nil || len(m.recorded.List)+len(part.List) > 2*wire.MaxReads {
		return errors.New("reads that were not asked for")
	}
	m.recorded.Over = m.recorded.Over || part.Over
	m.recorded.List = append(m.recorded.List, part.List...)
	return nil
}

func (m *Monitor) sendMessage(message []byte) error {
	if err := m.Err(); err != nil {
		return err
	}
	// If the other end is closed, the reader reaches the end too and reports it.
	return m.conn.writeMessage(message)
}
