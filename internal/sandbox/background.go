// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxBackground is how many commands may run in the background at once.
const MaxBackground = 8

// Start starts x, which has no network, outputs or cell and is not a service, in the
// background: it runs beside later commands until its first process ends, Kill is called, a
// limit is reached, or the sandbox ends. Then every process of it is killed by gVisor's
// kernel, which knows which ones they are, whatever became of their parents.
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
	if err == nil && (!r.o.isWatched() || x.Cell != nil || x.Service || len(x.Outputs) > 0 ||
		len(x.Grant.Network) > 0) {
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
}

// startBackground starts x in the background.
func (s *instance) startBackground(ctx context.Context, x Execution, fresh bool) (*process, error) {
	c := &command{s: s, x: x, ended: make(chan struct{}), background: true}
	p := &process{c: c, fresh: fresh, done: make(chan struct{})}
	if err := c.openStreams(); err != nil {
		return nil, s.describeStartError(err)
	}
	if err := s.gate.beginCommand(c); err != nil {
		c.stdout.closePipes()
		c.stderr.closePipes()
		return nil, errors.Join(err, c.conn.Close())
	}
	pid, err := c.startProcess()
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
	go p.waitAndFinish(pid)
	return p, nil
}

// waitAndFinish waits for the end of the command and makes its result.
func (p *process) waitAndFinish(pid int32) {
	defer p.c.s.backgrounds.all.Done()
	defer close(p.done)
	status, err := p.c.waitForEnd(context.Background(), pid)
	p.c.s.backgrounds.remove(p)
	p.result, p.err = p.c.finishBackground(status, err)
	p.result.NewSandbox = p.fresh
	_ = p.c.conn.Close()
}

// finishBackground kills what is left of a command in the background, drains, and makes the result.
func (c *command) finishBackground(status syscall.WaitStatus, waitErr error) (proposal.Result, error) {
	r := proposal.Result{Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	left, mark, err := c.s.gate.monitor.Kill(c.facts, c.s.gate.nudgeKernel, killGrace)
	if err != nil && !c.s.isDead() {
		_ = c.s.killSandbox()
	}
	r.WallMS, r.Leftover = time.Since(c.began).Milliseconds(), left
	after := c.s.cgroup.readUsage()
	r.CPUMS = (after.cpu - c.before.cpu).Milliseconds()
	r.Stdout, r.Stderr = c.stdout.finishStream(drainGrace), c.stderr.finishStream(drainGrace)
	mark, err = c.s.gate.monitor.EndWithMark(c.facts, mark, err)
	gateErr := c.s.gate.recordMark(c, &r, mark, err)
	c.recordUsage(&r, after)
	err = c.setEndStatus(&r, status, waitErr, after, nil)
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
	return r.current.doWhileStopped(func() error { return r.current.addChanges(result) })
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
	err := p.c.s.gate.interruptCommand(p.c)
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

// interruptCommand sends SIGINT to all processes of c.
func (g *execGate) interruptCommand(c *command) error {
	return g.monitor.Signal(c.facts, int32(syscall.SIGINT), g.nudgeKernel)
}

// killCommand kills all processes of c, which runs in the background.
func (g *execGate) killCommand(c *command) error {
	_, _, err := g.monitor.Kill(c.facts, g.nudgeKernel, killGrace)
	return err
}
