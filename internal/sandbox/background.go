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
func (r *Runner) Start(ctx context.Context, x proposal.Execution) (proposal.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return nil, r.ended
	}
	err := acceptable(r.o, x.Grant)
	if err == nil && (!r.o.watched() || x.Cell != nil || x.Service || len(x.Outputs) > 0 || len(x.Grant.Network) > 0) {
		err = stop("sandbox.background", "this command cannot run in the background", "run it in the foreground", nil)
	}
	if err != nil {
		return nil, err
	}
	fresh, err := r.renew(context.WithoutCancel(ctx), false) // a start that is cancelled would end the run
	if err == nil && len(r.current.backgroundIDs()) >= MaxBackground {
		return nil, stop("sandbox.background", fmt.Sprintf("%d commands run in the background", MaxBackground), "end one of them", nil)
	}
	if err != nil {
		r.ended = err
		return nil, err
	}
	r.current.used = true
	p, err := r.current.start(ctx, x, fresh)
	if err != nil && ctx.Err() == nil {
		r.ended = err
	}
	if r.current.dead() {
		err = errors.Join(err, r.drop())
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

// start starts x in the background.
func (s *instance) start(ctx context.Context, x proposal.Execution, fresh bool) (*process, error) {
	c := &command{s: s, x: x, ended: make(chan struct{}), background: true}
	p := &process{c: c, fresh: fresh, done: make(chan struct{})}
	if err := c.open(); err != nil {
		return nil, s.describe(err)
	}
	if err := s.gate.begin(c); err != nil {
		c.stdout.abandon()
		c.stderr.abandon()
		return nil, errors.Join(err, c.conn.Close())
	}
	pid, err := c.start()
	if err != nil {
		c.background = false // nothing of it runs beside others
		p.result, p.err = c.notStarted(err)
		s.goOn()
		p.result.NewSandbox = fresh
		close(p.done)
		return p, errors.Join(p.err, c.conn.Close())
	}
	if err := s.gate.detach(c, pid); err != nil {
		_ = s.end() // its processes cannot be distinguished from others
	}
	s.backgrounds.add(p, pid)
	go p.attend(pid)
	return p, nil
}

// attend waits for the end of the command and makes its result.
func (p *process) attend(pid int32) {
	defer p.c.s.backgrounds.all.Done()
	defer close(p.done)
	status, err := p.c.wait(context.Background(), pid)
	p.c.s.backgrounds.remove(p)
	p.result, p.err = p.c.over(status, err)
	p.result.NewSandbox = p.fresh
	_ = p.c.conn.Close()
}

// over kills what is left of a command in the background, drains, and makes the result.
func (c *command) over(status syscall.WaitStatus, waitErr error) (proposal.Result, error) {
	r := proposal.Result{Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	left, mark, err := c.s.gate.monitor.Kill(c.facts, c.s.gate.nudge, killGrace)
	if err != nil && !c.s.dead() {
		_ = c.s.end()
	}
	r.WallMS, r.Leftover = time.Since(c.began).Milliseconds(), left
	after := c.s.cgroup.usage()
	r.CPUMS = (after.cpu - c.before.cpu).Milliseconds()
	r.Stdout, r.Stderr = c.stdout.finish(drainGrace), c.stderr.finish(drainGrace)
	mark, err = c.s.gate.monitor.Over(c.facts, mark, err)
	gateErr := c.s.gate.ended(c, &r, mark, err)
	c.account(&r, after)
	err = c.judge(&r, status, waitErr, after, nil)
	if gateErr != nil {
		_ = c.s.end()
		r.Status, r.Detail, err = proposal.SandboxFailed, gateErr.Error(), gateErr
	}
	return r, err
}

// Done implements proposal.Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Result implements proposal.Process.
func (p *process) Result() (proposal.Result, error) {
	<-p.done
	return p.result, p.err
}

// Kill implements proposal.Process.
func (p *process) Kill(by string) { p.c.kills(by, proposal.KilledDetail(by)) }

// Interrupt implements proposal.Process.
func (p *process) Interrupt() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	err := p.c.s.gate.interrupt(p.c)
	if err != nil && (p.c.s.dead() || p.c.stopped()) {
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

// most raises the limits that all processes of a sandbox share to those of the commands in
// the background.
func (b *backgrounds) most(l proposal.Limits) proposal.Limits {
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

// goOn lets the commands in the background go on, which a sweep has stopped. If it cannot,
// the sandbox ends.
func (s *instance) goOn() {
	ids := s.backgroundIDs()
	if len(ids) == 0 || s.dead() {
		return
	}
	if err := s.init.goOn(sweepGrace, ids); err != nil {
		_ = s.end()
	}
}

// still calls do while no process runs: init requires that no process changes the files that it
// reads.
func (s *instance) still(do func() error) error {
	if len(s.backgroundIDs()) == 0 {
		return do()
	}
	if _, err := s.sweep(); err != nil {
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

// hits returns what the kernel has reported about the limits of the command in the
// foreground.
func (s *instance) hits() map[byte]bool {
	if s.gate == nil {
		return s.watch.hits()
	}
	return s.gate.hits()
}

// detach lets c go on in the background.
func (g *gate) detach(c *command, pid int32) error { return g.monitor.Detach(c.facts, pid, g.nudge) }

// interrupt sends SIGINT to all processes of c.
func (g *gate) interrupt(c *command) error {
	return g.monitor.Signal(c.facts, int32(syscall.SIGINT), g.nudge)
}

// kill kills all processes of c, which runs in the background.
func (g *gate) kill(c *command) error {
	_, _, err := g.monitor.Kill(c.facts, g.nudge, killGrace)
	return err
}
