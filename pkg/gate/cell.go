// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"sync"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// contexts are those in which code runs.
type contexts struct {
	mu sync.Mutex
	// busy are those with code that runs, by language and context; "" is a command that shares the sandbox with no
	// code, because it has a network.
	busy    map[string]bool
	waiting int           // commands that wait to run so; code that comes later waits for them
	freed   chan struct{} // closed when a change may let a waiting caller enter; nil if none waits
}

// enter waits until no code runs in the context key or, if that is "", in any. leave must be called.
func (c *contexts) enter(ctx context.Context, key string) (leave func(), err error) {
	if key == "" {
		c.changeAndWake(func() { c.waiting++ })
		defer c.changeAndWake(func() { c.waiting-- })
	}
	for {
		freed := c.tryEnter(key)
		if freed == nil {
			return func() { c.changeAndWake(func() { delete(c.busy, key) }) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryEnter enters, or returns what is closed when that is worth another try.
func (c *contexts) tryEnter(key string) (freed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mustWait := len(c.busy) > 0
	if key != "" {
		mustWait = c.waiting > 0 || c.busy[""] || c.busy[key]
	}
	switch {
	case mustWait:
		if c.freed == nil {
			c.freed = make(chan struct{})
		}
		return c.freed
	case c.busy == nil:
		c.busy = map[string]bool{}
	}
	c.busy[key] = true
	return nil
}

// changeAndWake calls do, and lets those that wait try again.
func (c *contexts) changeAndWake(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if do(); c.freed != nil {
		close(c.freed)
		c.freed = nil
	}
}

// runCell runs code in a context beside other calls. It waits only for earlier code of the context. Where nothing can
// run in the background, it runs in the foreground.
func (s *session) runCell(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (record proposal.Record, err error) {
	leave, err := s.contexts.enter(ctx, p.Language+" "+p.Context)
	if err != nil {
		return record, err
	}
	defer leave()
	var running *order.Running
	record, err = s.callProposed(ctx, p, func(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
		var stop *proposal.StopError
		started, err := s.startBeside(ctx, p, a)
		if errors.As(err, &stop) && stop.Code == errNotBeside.Code {
			return s.doInTurn(ctx, p, a)
		}
		running = started
		return proposal.Record{}, err
	})
	if running == nil || err != nil {
		return record, err
	}
	defer s.stayOpen()()
	defer context.AfterFunc(ctx, func() { running.Kill(sandbox.KilledBy(context.Cause(ctx))) })()
	record, err = running.Record()
	return record, s.gate.redactor.Error(err)
}

// doInTurn runs p in the foreground.
func (s *session) doInTurn(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (proposal.Record, error) {
	if a != nil {
		return s.inner.DoApproved(ctx, p, *a)
	}
	return s.inner.Do(ctx, p)
}

// runProposal runs p: code in a context beside other calls, everything else in the foreground.
func (s *session) runProposal(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (proposal.Record, error) {
	if p.Context != "" {
		return s.runCell(ctx, p, a)
	}
	if len(p.Network) > 0 {
		leave, err := s.contexts.enter(ctx, "")
		if err != nil {
			return proposal.Record{}, err
		}
		defer leave()
	}
	return s.callProposed(ctx, p, func(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
		return s.doInTurn(ctx, p, a)
	})
}
