// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A backgroundProcess is the Process of a session in this process.
type backgroundProcess struct {
	session *session
	running *order.Running
}

func (s *session) Start(ctx context.Context, p proposal.Proposal) (started Process, err error) {
	if p.Context != "" {
		return nil, contextError("a command in the background cannot have a context")
	}
	_, err = s.callProposed(ctx, p, func(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
		running, err := s.startBeside(ctx, p, nil)
		if err == nil {
			started = &backgroundProcess{session: s, running: running}
		}
		return proposal.Record{}, err
	})
	return started, err
}

// startBeside starts p in the background.
func (s *session) startBeside(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (*order.Running, error) {
	if s.wanted && (s.served || len(s.setup) > 0) {
		return nil, errNotBeside
	}
	return s.inner.Start(ctx, p, a)
}

var errNotBeside = &proposal.StopError{Code: "session.background",
	Message: "no command can run in the background before set-up has run, or with services",
	Hint:    "run it in the foreground"}

func (p *backgroundProcess) Done() <-chan struct{} { return p.running.Done() }

func (p *backgroundProcess) Wait(ctx context.Context) (proposal.Record, error) {
	defer p.session.stayOpen()()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return proposal.Record{}, ctx.Err()
	}
	record, err := p.running.Record()
	return record, p.session.gate.redactor.Error(err)
}

func (p *backgroundProcess) Interrupt() error {
	if err := p.running.Interrupt(); err != nil {
		return p.session.gate.redactor.Error(&proposal.StopError{Code: "session.interrupt",
			Message: "cannot interrupt the command", Hint: "kill it", Err: err})
	}
	return nil
}

func (p *backgroundProcess) Kill() { p.running.Kill(proposal.KilledCaller) }
