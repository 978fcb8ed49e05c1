// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net/http"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// handleStart answers until the command in the background has ended. If the client is gone, it is killed.
func (s *server) handleStart(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := readDocument[proposeRequest](w, r)
	if err == nil && p.Approval != nil {
		err = refuseRequest("a command in the background has no approval", "leave it out")
	}
	if err != nil {
		return err
	}
	id, ctx, events, end := s.beginStream(w, r, p.Output)
	defer end()
	process, err := session.Start(ctx, p.Proposal)
	if err != nil {
		_ = events.sendEvent(event{Error: proposal.FailureOf(err)})
		return nil
	}
	defer context.AfterFunc(ctx, process.Kill)()
	s.running.setInterrupt(id, process.Interrupt)
	_ = events.sendEvent(event{Started: true})
	record, err := process.Wait(s.ctx)
	_ = events.sendEvent(s.lastEvent(record, err))
	return nil
}

// handleInterrupt interrupts a command in the background.
func (s *server) handleInterrupt(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	sendAnswer(w, struct{}{}, s.running.interruptRequest(r.PathValue("id")))
	return nil
}

// A process is a gate.Process of the server. Its methods are safe for concurrent use.
type process struct {
	command *command
	done    chan struct{} // closed when record and err are set
	record  proposal.Record
	err     error
}

// Start is gate.Session.Start. If the connection ends, the command is killed. ctx is for the
// decision and the start, and for gate.WithOutput.
func (s *Session) Start(ctx context.Context, p proposal.Proposal) (gate.Process, error) {
	q := proposeRequest{Proposal: p, Output: order.OutputOf(ctx) != nil}
	x, err := s.startCommand(ctx, request{method: http.MethodPost, path: "/processes", document: q}, q.Output)
	if err != nil {
		return nil, err
	}
	starting := context.AfterFunc(ctx, x.interrupt)
	e, err := x.nextEvent(ctx)
	starting()
	if err == nil && !e.Started {
		err = invalidAnswer(errors.New("the command has not started"))
	}
	if err != nil {
		x.close()
		return nil, err
	}
	started := &process{command: x, done: make(chan struct{})}
	go started.readUntilEnd(p.ID)
	return started, nil
}

// readUntilEnd reads until the command has ended.
func (p *process) readUntilEnd(id string) {
	defer close(p.done)
	defer p.command.close()
	p.record, p.err = p.command.readRecord(p.command.session.ctx, id)
}

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Wait(ctx context.Context) (proposal.Record, error) {
	select {
	case <-p.done:
		return p.record, p.err
	case <-ctx.Done():
		return proposal.Record{}, ctx.Err()
	}
}

func (p *process) Interrupt() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	// Not the command's context: the answer may come after the end that it asks for.
	ctx, cancel := context.WithTimeout(p.command.session.ctx, p.command.session.client.bounds.patience)
	defer cancel()
	q := request{method: http.MethodPost, path: "/running/" + p.command.commandID() + "/interrupt"}
	return p.command.session.callServer(ctx, q, &struct{}{})
}

// Kill is gate.Process.Kill. If the server does not answer, the connection is ended, which
// kills the command as well.
func (p *process) Kill() { p.command.interrupt() }
