// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxBackground is how many commands of a session may run in the background at once.
const MaxBackground = hood.MaxBackground

// A Process is a command that Session.Start started. Its methods are safe for concurrent use,
// do not wait for other calls of the Session, and do nothing once the command has ended.
type Process struct {
	session *Session
	running *hood.Running
	id      string
}

// Start decides p, writes the decision to the log, and starts p in the background if it is
// allowed. It returns when the command has started; a command that is not allowed, or cannot
// start, is a Process that has ended. Other commands and code run meanwhile, and up to
// MaxBackground in the background. ctx is for the decision and the start, and for WithOutput.
//
// Policy decides every program that the command starts, with the command's own grants, and its
// Record has its own events, whatever else runs. When its first process ends, Kill is called,
// its time, output or events are used up, or the session ends, all its processes are killed,
// daemons included.
//
// p cannot have outputs, a context, a network or a new sandbox (session.proposal), and while
// commands run in the background, none is granted a network. Its Stdin is all its input: what
// comes later could not be decided. Files that it changes are among the changes of later
// commands. Memory, processes and disk are the session's: the largest limits of the commands
// that run apply to all of them together. A command that is stopped because of memory takes
// the sandbox with it: each Result says so.
//
// A session in which only commands in the background run is idle: see SessionOptions.Idle.
//
// The error is as for Do. One more is session.background: too many run already.
func (s *Session) Start(ctx context.Context, p proposal.Proposal) (*Process, error) {
	return s.started(ctx, p, nil)
}

// StartApproved is Start as DoApproved is Do.
func (s *Session) StartApproved(ctx context.Context, p proposal.Proposal, a proposal.ClientApproval) (*Process, error) {
	return s.started(ctx, p, &a)
}

func (s *Session) started(ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval) (*Process, error) {
	var started *Process
	_, err := s.decided(ctx, p, func(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
		r, err := s.inner.Start(ctx, p, a)
		if err == nil {
			started = &Process{session: s, running: r, id: p.ID}
		}
		return proposal.Record{}, err
	})
	return started, err
}

// ID returns the proposal's id.
func (p *Process) ID() string { return p.id }

// Done is closed when the command has ended and its result is in the log.
func (p *Process) Done() <-chan struct{} { return p.running.Done() }

// Wait waits until Done is closed and returns the Record, as Do does, or ctx's error.
func (p *Process) Wait(ctx context.Context) (proposal.Record, error) {
	select {
	case <-p.Done():
	case <-ctx.Done():
		return proposal.Record{}, ctx.Err()
	}
	record, err := p.running.Record()
	return record, p.session.gate.redactor.Error(err)
}

// Interrupt sends SIGINT to every process of the command, as Ctrl-C does in a terminal.
func (p *Process) Interrupt() error {
	if err := p.running.Interrupt(); err != nil {
		return p.session.gate.redactor.Error(&proposal.StopError{Code: "session.interrupt", Message: "cannot interrupt the command", Hint: "kill it", Err: err})
	}
	return nil
}

// Kill kills every process of the command. It does not wait for its end.
func (p *Process) Kill() { p.running.Kill(proposal.KilledCaller) }
