// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxBackground is how many commands may run in the background at once.
const MaxBackground = 8

// Start starts x, which has no network and no outputs and is not a service, in the
// background: it runs beside later commands until its first process ends, Kill is called, a
// limit is reached, or the sandbox ends. Then every process of it is killed by gVisor's
// kernel, which knows which ones they are, whatever became of their parents.
//
// A Cell ends when its code does. Then its interpreter and, except in a shell, what the interpreter has started and not
// left, are stopped instead. Two cells of one context cannot run at once.
//
// A command that does not start is a Process that has ended. An error is one of Run. While a
// command in the foreground ends, and while files are read or written, background commands
// are stopped for a moment, and orphans that they made are killed.
func (r *Runner) Start(ctx context.Context, x Execution) (Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil, r.ended
	}
	err := checkGrant(r.o, x.Grant)
	if err == nil && (!r.o.isWatched() || x.Service || len(x.Outputs) > 0 || len(x.Grant.Network) > 0) {
		err = newStopError("sandbox.background", "this command cannot run in the background",
			"run it in the foreground", nil)
	}
	if err != nil {
		return nil, err
	}
	fresh, err := r.ensureRunning(context.WithoutCancel(ctx), false) // a start that is cancelled would end the run
	if err == nil && len(r.current.backgroundIDs()) >= MaxBackground {
		return nil, newStopError("sandbox.background", fmt.Sprintf("%d commands run in the background", MaxBackground),
			"end one of them", nil)
	}
	if err != nil {
		r.ended = err
		return nil, err
	}
	r.current.used = true
	p, err := r.current.startBackground(ctx, x, fresh)
	if err != nil && ctx.Err() == nil {
		r.ended = err
	}
	if r.current.isDead() {
		err = errors.Join(err, r.closeCurrent())
	}
	if p == nil {
		return nil, err
	}
	return p, err
}

// A process is a command in the background.
type process struct {
	c      *command
	fresh  bool
	done   chan struct{} // closed when the next two are set
	result proposal.Result
	err    error
}

// backgrounds are an instance's commands in the background.
type backgrounds struct {
	mu   sync.Mutex
	list map[*process]int32 // with the id of the first process, until that ends
	all  sync.WaitGroup
	// ending says that the sandbox was ended, for whatever reason.
	ending atomic.Bool
	// turning is held while processes are let go on after a sweep, and while a cell's are stopped and its
	// interpreter is taken off the list.
	turning sync.Mutex
}

// startBackground starts x in the background.
func (s *instance) startBackground(ctx context.Context, x Execution, fresh bool) (*process, error) {
	c, err := s.takeCommand(x, true)
	if err != nil {
		return nil, err
	}
	p := &process{c: c, fresh: fresh, done: make(chan struct{})}
	pid, r, err := c.startFirst()
	if err != nil {
		c.background = false // nothing of it runs beside others
		p.result, p.err = c.notStarted(err)
		s.goOn()
		p.result.NewSandbox = fresh
		close(p.done)
		return p, errors.Join(p.err, c.conn.Close())
	}
	if err := s.gate.detachCommand(c, pid); err != nil {
		_ = s.killSandbox() // its processes cannot be distinguished from others
	}
	c.startClock() // before a pause can stop it
	s.backgrounds.add(p, pid)
	if r != nil {
		if err := s.gate.signalCommand(c, 0, syscall.SIGCONT); err != nil {
			_ = s.killSandbox()
		}
		go p.executeAndFinish(r)
		return p, nil
	}
	go p.waitAndFinish(pid)
	return p, nil
}

// startFirst returns the command's first process, and the interpreter that it is, for a cell. That may have run before:
// it is stopped.
func (c *command) startFirst() (pid int32, r *liveInterpreter, err error) {
	if c.x.Cell == nil {
		pid, err = c.startProcess()
		return pid, nil, err
	}
	if r, err = c.beginCell(); err != nil {
		return 0, nil, err
	}
	return r.pid, r, nil
}

// waitAndFinish waits for the end of the command and makes its result.
func (p *process) waitAndFinish(pid int32) {
	status, err := p.c.waitForEnd(context.Background(), pid)
	p.c.s.backgrounds.remove(p)
	left, mark, killErr := p.c.s.gate.monitor.Kill(p.c.facts, p.c.s.gate.nudgeKernel, killGrace)
	p.finish(processEnd{status, err}, left, mark, killErr)
}

// executeAndFinish runs the command's cell and makes its result.
func (p *process) executeAndFinish(r *liveInterpreter) {
	c := p.c
	how, err := c.executeCell(context.Background(), r)
	if err != nil {
		how = processEnd{status: 127 << 8}
		c.lost = "cannot start: " + err.Error()
	}
	b := c.s.backgrounds
	b.turning.Lock()
	// What has ended holds nothing.
	left, mark, holdErr := c.s.gate.monitor.Hold(c.facts, r.pid, r.shell != nil, c.s.gate.nudgeKernel, killGrace)
	b.remove(p)
	b.turning.Unlock()
	r.endCell() // not before: the kernel would count what r does for the next cell as this one's
	p.finish(how, left, mark, holdErr)
}

// finish makes the result of a command of which nothing runs any more, unless endErr says why that is not known. left
// is how many processes were killed, mark the kernel's last message.
func (p *process) finish(how processEnd, left int, mark wire.Mark, endErr error) {
	defer p.c.s.backgrounds.all.Done()
	defer close(p.done)
	if endErr != nil && !p.c.s.isDead() {
		_ = p.c.s.killSandbox()
	}
	p.result, p.err = p.c.finishBackground(how, left, mark, endErr)
	p.result.NewSandbox = p.fresh
	_ = p.c.conn.Close()
}

// finishBackground drains a command in the background, and makes the result.
func (c *command) finishBackground(
	how processEnd, left int, mark wire.Mark, endErr error,
) (proposal.Result, error) {
	r := proposal.Result{Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	r.WallMS, r.Leftover = time.Since(c.began).Milliseconds(), left
	after := c.s.cgroup.readUsage()
	r.CPUMS = (after.cpu - c.before.cpu).Milliseconds()
	r.Stdout, r.Stderr = c.stdout.finishStream(drainGrace), c.stderr.finishStream(drainGrace)
	c.showCell(&r)
	mark, err := c.s.gate.monitor.EndWithMark(c.facts, mark, endErr)
	gateErr := c.s.gate.recordMark(c, &r, mark, err)
	var reported map[byte]bool
	if c.x.Cell != nil && !c.s.backgrounds.wasShared(c) {
		r.PeakMem, reported = c.s.cgroup.peakMemory(), c.s.reportedLimits()
		c.s.heavy.Store(r.PeakMem-c.held > heavyGrowth)
	}
	c.recordUsage(&r, after)
	err = c.setEndStatus(&r, how.status, how.err, after, reported)
	r.Detail = cmp.Or(r.Detail, c.lost)
	if gateErr != nil {
		_ = c.s.killSandbox()
		r.Status, r.Detail, err = proposal.SandboxFailed, gateErr.Error(), gateErr
	}
	return r, err
}

// AddChanges adds to result, which is p's, what has changed since the last command of which this is known, and the
// test results that a failed command left. It adds nothing while another command runs: the one that ends last has
// the changes of all.
func (r *Runner) AddChanges(p Process, result *proposal.Result) error {
	if !r.mu.TryLock() {
		return nil
	}
	defer r.mu.Unlock()
	own, ok := p.(*process)
	if !ok || r.ended != nil || r.current != own.c.s || r.current.isDead() || len(r.current.backgroundIDs()) > 0 {
		return nil
	}
	if r.current.mayHaveWoken(own.c) {
		if _, err := r.current.sweepProcesses(); err != nil {
			return err
		}
	}
	return r.current.addChanges(result)
}

// mayHaveWoken reports whether there is another interpreter than that of c, which has ended. Its processes have the
// same user, and c may have sent them SIGCONT.
func (s *instance) mayHaveWoken(c *command) bool {
	s.interpreters.mu.Lock()
	defer s.interpreters.mu.Unlock()
	for key := range s.interpreters.list {
		if c.x.Cell == nil || key != contextKey(c.x.Cell) {
			return true
		}
	}
	return false
}

// Done implements Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Result implements Process.
func (p *process) Result() (proposal.Result, error) {
	<-p.done
	return p.result, p.err
}

// Kill implements Process.
func (p *process) Kill(by string) { p.c.endKilledBy(by, proposal.Result{Killed: by}.KilledDetail()) }

// Interrupt implements Process.
func (p *process) Interrupt() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.c.s.gate.signalCommand(p.c, 0, syscall.SIGINT)
	if err != nil && (p.c.s.isDead() || p.c.wasStopped()) {
		return nil // it ends anyway
	}
	return err
}

func (b *backgrounds) add(p *process, pid int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list == nil {
		b.list = map[*process]int32{}
	}
	b.list[p] = pid
	b.all.Add(1)
	if len(b.list) > 1 {
		b.markSharedLocked()
	}
}

// markShared notes that another command runs beside those in the background.
func (b *backgrounds) markShared() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.markSharedLocked()
}

func (b *backgrounds) markSharedLocked() {
	for p := range b.list {
		p.c.shared = true
	}
}

// wasShared reports whether other commands ran beside c.
func (b *backgrounds) wasShared(c *command) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.shared
}

func (b *backgrounds) remove(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.list, p)
}

// raiseSharedLimits raises the limits that all processes of a sandbox share to those of the commands in
// the background.
func (b *backgrounds) raiseSharedLimits(l proposal.Limits) proposal.Limits {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.list {
		g := p.c.x.Grant.Limits
		l.CPUs, l.Memory, l.Pids = max(l.CPUs, g.CPUs), max(l.Memory, g.Memory), max(l.Pids, g.Pids)
	}
	return l
}

// backgroundIDs returns the first processes of the commands in the background.
func (s *instance) backgroundIDs() []int32 {
	s.backgrounds.mu.Lock()
	defer s.backgrounds.mu.Unlock()
	return slices.Collect(maps.Values(s.backgrounds.list))
}

// goOn lets the commands in the background go on, which a sweep has stopped, unless they are paused. If it
// cannot, the sandbox ends.
func (s *instance) goOn() {
	s.backgrounds.turning.Lock()
	defer s.backgrounds.turning.Unlock()
	ids := s.backgroundIDs()
	if len(ids) == 0 || s.paused || s.isDead() {
		return
	}
	if err := s.init.goOn(sweepGrace, ids); err != nil {
		_ = s.killSandbox()
	}
}

// doWhileStopped calls do while no process runs: init requires that no process changes the files that it
// reads.
func (s *instance) doWhileStopped(do func() error) error {
	if len(s.backgroundIDs()) == 0 {
		return do()
	}
	if _, err := s.sweepProcesses(); err != nil {
		return err
	}
	defer s.goOn()
	return do()
}

// endBackground kills the commands in the background and waits for their results.
func (s *instance) endBackground() error {
	s.backgrounds.mu.Lock()
	for p := range s.backgrounds.list {
		p.Kill(proposal.KilledSandbox)
	}
	s.backgrounds.mu.Unlock()
	s.backgrounds.all.Wait()
	return nil
}

// reportedLimits returns what the kernel has reported about the limits of the command in the
// foreground.
func (s *instance) reportedLimits() map[byte]bool {
	if s.gate == nil {
		return s.watch.reportedLimits()
	}
	return s.gate.reportedLimits()
}

// detachCommand lets c go on in the background.
func (g *execGate) detachCommand(c *command, pid int32) error {
	return g.monitor.Detach(c.facts, pid, g.nudgeKernel)
}

// signalCommand sends a signal to all processes of c, which runs in the background, or to pid only if it is not 0.
func (g *execGate) signalCommand(c *command, pid int32, signal syscall.Signal) error {
	return g.monitor.Signal(c.facts, pid, int32(signal), g.nudgeKernel)
}

// killCommand kills all processes of c, which runs in the background.
func (g *execGate) killCommand(c *command) error {
	_, _, err := g.monitor.Kill(c.facts, g.nudgeKernel, killGrace)
	return err
}
