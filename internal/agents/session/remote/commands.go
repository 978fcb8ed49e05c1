// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// codeCancelled is the code of a call that ended before it was its turn, because the client asked.
const codeCancelled = "session.cancelled"

// A proposeRequest is the request for a proposal.
type proposeRequest struct {
	Proposal proposal.Proposal        `json:"proposal"`
	Approval *proposal.ClientApproval `json:"approval,omitempty"`
	Output   bool                     `json:"output,omitempty"` // send it as it comes
}

func (p proposeRequest) doProposal(ctx context.Context, session gate.Session) (proposal.Record, error) {
	if p.Approval != nil {
		return session.DoApproved(ctx, p.Proposal, *p.Approval)
	}
	return session.Do(ctx, p.Proposal)
}

// beginStream begins the answer to a request that can be interrupted. With the returned context, output
// is sent as it comes, if that is wanted. end must be called.
func (s *server) beginStream(
	w http.ResponseWriter, r *http.Request, output bool,
) (id string, ctx context.Context, events *stream, end func()) {
	id, ctx, forget := s.running.beginRequest(r.Context())
	events = newStream(w)
	_ = events.sendEvent(event{ID: id})
	if output {
		ctx = gate.WithOutput(ctx, func(c proposal.Chunk) { _ = events.sendEvent(event{Output: &c}) })
	}
	return id, ctx, events, func() { events.endStream(); forget() }
}

// lastEvent is the event that ends the answer to a proposal.
func (s *server) lastEvent(record proposal.Record, err error) event {
	if errors.Is(err, context.Canceled) && !errors.As(err, new(*proposal.StopError)) {
		err = &proposal.StopError{Code: codeCancelled, Message: "the call was cancelled"}
	}
	if err != nil {
		return event{Error: proposal.FailureOf(err)}
	}
	record = s.files.announceRecord(record)
	return event{Record: &record}
}

func (s *server) handlePropose(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := readDocument[proposeRequest](w, r)
	if err != nil {
		return err
	}
	_, ctx, events, end := s.beginStream(w, r, p.Output)
	defer end()
	record, err := p.doProposal(ctx, session)
	_ = events.sendEvent(s.lastEvent(record, err))
	return nil
}

// Do is gate.Session.Do, for a proposal of at most 1 MiB as JSON. If ctx ends, the command is
// interrupted, and the Record says so; if that takes more than 30 seconds, the connection is
// ended, which kills it. The files of the Result are copies among the artifacts.
func (s *Session) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	return s.propose(ctx, proposeRequest{Proposal: p})
}

// DoApproved is gate.Session.DoApproved. The server checks a as the gate does.
func (s *Session) DoApproved(
	ctx context.Context, p proposal.Proposal, a proposal.ClientApproval,
) (proposal.Record, error) {
	return s.propose(ctx, proposeRequest{Proposal: p, Approval: &a})
}

func (s *Session) propose(ctx context.Context, p proposeRequest) (record proposal.Record, err error) {
	p.Output = order.OutputOf(ctx) != nil
	x, err := s.startCommand(ctx, request{method: http.MethodPost, path: "/proposals", document: p}, p.Output)
	if err != nil {
		return record, err
	}
	defer x.close()
	defer context.AfterFunc(ctx, x.interrupt)()
	return x.readRecord(ctx, p.Proposal.ID)
}

// A setUpRequest is the request for the set-up before a proposal.
type setUpRequest struct {
	Proposal proposal.Proposal `json:"proposal"`
	Output   bool              `json:"output"`
}

func (s *server) setUp(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := readDocument[setUpRequest](w, r)
	if err != nil {
		return err
	}
	_, ctx, events, end := s.beginStream(w, r, p.Output)
	defer end()
	each := func(record proposal.Record) { _ = events.sendEvent(s.lastEvent(record, nil)) }
	err = session.SetUp(ctx, p.Proposal, each)
	_ = events.sendEvent(event{Ended: err == nil, Error: proposal.FailureOf(err)})
	return nil
}

// SetUp is gate.Session.SetUp.
func (s *Session) SetUp(ctx context.Context, before proposal.Proposal, each func(proposal.Record)) error {
	output := order.OutputOf(ctx) != nil
	x, err := s.startCommand(ctx, request{method: http.MethodPost, path: "/session/setup",
		document: setUpRequest{before, output}}, output)
	if err != nil {
		return err
	}
	defer x.close()
	defer context.AfterFunc(ctx, x.interrupt)()
	for {
		e, err := x.nextEvent(ctx)
		if err != nil || e.Ended {
			return err
		}
		if e.Record != nil && each != nil {
			each(x.fetchFiles(*e.Record))
		}
	}
}

// handleEnd ends a command.
func (s *server) handleEnd(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	sendAnswer(w, struct{}{}, s.running.cancelRequest(r.PathValue("id")))
	return nil
}

var validRequest = pattern.New(`^c[0-9]{1,18}$`)

// A command is a request whose answer is a stream of events.
type command struct {
	session *Session
	ctx     context.Context // of the request
	cancel  context.CancelFunc
	answer  *http.Response
	events  *reader
	output  *outputQueue

	mu     sync.Mutex
	id     string
	ending bool        // it is to be interrupted
	late   *time.Timer // gives up the request
}

// startCommand sends a request that outlives ctx: its command is interrupted, and it says how it ended.
func (s *Session) startCommand(ctx context.Context, q request, output bool) (*command, error) {
	if err := errors.Join(s.checkOpen(), interruptionOf(ctx)); err != nil {
		return nil, err
	}
	x := &command{session: s}
	x.ctx, x.cancel = s.withSession(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, x.giveUp)()
	q.token = s.token
	answer, err := s.client.sendRequest(x.ctx, q)
	if err != nil {
		x.cancel()
		return nil, errors.Join(interruptionOf(ctx), causeOrError(s.ctx, err))
	}
	x.answer, x.events = answer, s.client.newReader(answer.Body, s.client.bounds.line, s.client.bounds.output)
	var receive func(proposal.Chunk)
	if output {
		receive = order.OutputOf(ctx)
	}
	x.output = newOutlet(receive, s.client.bounds.lastCalls)
	return x, nil
}

// close ends the request, after the receiver of the output has all of it.
func (x *command) close() {
	x.output.close()
	x.mu.Lock()
	if x.late != nil {
		x.late.Stop()
	}
	x.mu.Unlock()
	x.cancel()
	_ = x.answer.Body.Close()
}

// giveUp ends the request if it does not end soon.
func (x *command) giveUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.late == nil {
		x.late = time.AfterFunc(x.session.client.bounds.patience, x.cancel)
	}
}

// interrupt ends the command: now, or when its id is known.
func (x *command) interrupt() {
	x.giveUp()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ending = true
	if x.id != "" {
		go x.requestEnd(x.id)
	}
}

// setID sets the command's id.
func (x *command) setID(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id = id
	if x.ending {
		go x.requestEnd(id)
	}
}

// commandID returns the command's id.
func (x *command) commandID() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.id
}

func (x *command) requestEnd(id string) {
	var answer struct{}
	end := request{method: http.MethodPost, path: "/running/" + id + "/end", token: x.session.token}
	var stopped *proposal.StopError
	err := x.session.client.callServer(x.ctx, end, &answer)
	if errors.As(err, &stopped) && stopped.Code == errRequests.Code {
		x.cancel() // a lost connection ends the command, too. After another error its result may be on its way
	}
}

// nextEvent returns the next event that is not output. ctx is the caller's.
func (x *command) nextEvent(ctx context.Context) (event, error) {
	for {
		e, err := x.events.readEvent(x.session.client.bounds.values)
		switch {
		case err != nil:
			return e, x.streamError(ctx, err)
		case e.Output != nil:
			x.output.queueChunk(*e.Output)
		case e.ID != "" && validRequest.MatchString(e.ID):
			x.setID(e.ID)
		case e.Error != nil:
			return e, x.serverError(ctx, e.Error)
		case e.ID != "" || e.Alive:
			return e, invalidAnswer(errors.New("an event is unexpected"))
		default:
			return e, nil
		}
	}
}

// streamError returns why the stream ended too early.
func (x *command) streamError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(order.InterruptionError(ctx), err)
	}
	return causeOrError(x.session.ctx, err)
}

// serverError returns the server's error; the caller's own if that is why nothing ran.
func (x *command) serverError(ctx context.Context, f *proposal.Failure) error {
	if ctx.Err() != nil && f.Code == codeCancelled {
		return interruptionOf(ctx)
	}
	return toStopError(f)
}

// readRecord returns the Record of the proposal id.
func (x *command) readRecord(ctx context.Context, id string) (proposal.Record, error) {
	e, err := x.nextEvent(ctx)
	if err != nil {
		return proposal.Record{}, err
	}
	if e.Record == nil || id != "" && e.Record.Proposal.ID != id {
		return proposal.Record{}, invalidAnswer(fmt.Errorf("there is no record of the proposal %q", id))
	}
	return x.fetchFiles(*e.Record), nil
}
