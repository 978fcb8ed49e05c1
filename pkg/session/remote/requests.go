// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

func (s *server) check(w http.ResponseWriter, r *http.Request) error {
	plan, err := document[proposal.Plan](w, r)
	if err != nil {
		return err
	}
	records, err := s.o.Gate.Check(r.Context(), plan)
	wire.Answer(w, records, err)
	return nil
}

// heartbeat is the time between two signs of life.
const heartbeat = 10 * time.Second

// events sends signs of life until the session has ended.
func (s *server) events(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	s.enter()
	defer s.exit()
	events := wire.NewStream(w)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		if err := events.Send(wire.Event{Alive: true}); err != nil {
			return nil
		}
		select {
		case <-s.ended:
			_ = events.Send(wire.Event{Ended: true})
			return nil
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

// A request for a proposal.
type proposed struct {
	Proposal proposal.Proposal        `json:"proposal"`
	Approval *proposal.ClientApproval `json:"approval,omitempty"`
	Output   bool                     `json:"output,omitempty"` // send it as it comes
}

func (p proposed) do(ctx context.Context, session gate.Session) (proposal.Record, error) {
	if p.Approval != nil {
		return session.DoApproved(ctx, p.Proposal, *p.Approval)
	}
	return session.Do(ctx, p.Proposal)
}

// stream begins the answer to a request that can be interrupted. With the returned context, output
// is sent as it comes, if that is wanted. end must be called.
func (s *server) stream(w http.ResponseWriter, r *http.Request, output bool) (id string, ctx context.Context, events *wire.Stream, end func()) {
	id, ctx, ended := s.running.Begin(r.Context())
	events = wire.NewStream(w)
	_ = events.Send(wire.Event{ID: id})
	if output {
		ctx = gate.WithOutput(ctx, func(c proposal.Chunk) { _ = events.Send(wire.Event{Output: &c}) })
	}
	return id, ctx, events, func() { events.End(); ended() }
}

// last is the event that ends the answer to a proposal.
func (s *server) last(record proposal.Record, err error) wire.Event {
	if errors.Is(err, context.Canceled) && !errors.As(err, new(*proposal.StopError)) {
		err = &proposal.StopError{Code: codeCancelled, Message: "the call was cancelled"}
	}
	if err != nil {
		return wire.Event{Error: proposal.FailureOf(err)}
	}
	record = s.files.announced(record)
	return wire.Event{Record: &record}
}

func (s *server) propose(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := document[proposed](w, r)
	if err != nil {
		return err
	}
	_, ctx, events, end := s.stream(w, r, p.Output)
	defer end()
	record, err := p.do(ctx, session)
	_ = events.Send(s.last(record, err))
	return nil
}

// start answers until the command in the background has ended. If the client is gone, it is killed.
func (s *server) start(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := document[proposed](w, r)
	if err == nil && p.Approval != nil {
		err = wire.Refusal("a command in the background has no approval", "leave it out")
	}
	if err != nil {
		return err
	}
	id, ctx, events, end := s.stream(w, r, p.Output)
	defer end()
	process, err := session.Start(ctx, p.Proposal)
	if err != nil {
		_ = events.Send(wire.Event{Error: proposal.FailureOf(err)})
		return nil
	}
	defer context.AfterFunc(ctx, process.Kill)()
	s.running.Started(id, process.Interrupt)
	_ = events.Send(wire.Event{Started: true})
	record, err := process.Wait(s.ctx)
	_ = events.Send(s.last(record, err))
	return nil
}

// interrupt interrupts a command in the background, as the process of a terminal is.
func (s *server) interrupt(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	wire.Answer(w, struct{}{}, s.running.Interrupt(r.PathValue("id")))
	return nil
}

// finish ends a command.
func (s *server) finish(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	wire.Answer(w, struct{}{}, s.running.Cancel(r.PathValue("id")))
	return nil
}

func (s *server) setUp(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := document[struct {
		Output bool `json:"output"`
	}](w, r)
	if err != nil {
		return err
	}
	_, ctx, events, end := s.stream(w, r, p.Output)
	defer end()
	err = session.SetUp(ctx, func(record proposal.Record) { _ = events.Send(s.last(record, nil)) })
	_ = events.Send(wire.Event{Ended: err == nil, Error: proposal.FailureOf(err)})
	return nil
}

func (s *server) asked(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	p, err := document[proposal.Proposal](w, r)
	if err != nil {
		return err
	}
	a, err := session.Asked(r.Context(), p)
	wire.Answer(w, a, err)
	return nil
}

func (s *server) list(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	found, err := session.List(r.Context(), r.URL.Query().Get("pattern"))
	wire.Answer(w, found, err)
	return nil
}

func (s *server) changes(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	found, err := session.Changes(r.Context())
	wire.Answer(w, found, err)
	return nil
}

func (s *server) diff(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	paths, err := document[[]string](w, r)
	if err != nil {
		return err
	}
	d, err := session.Diff(r.Context(), paths...)
	d.Patch.File = s.files.announce(d.Patch.File)
	wire.Answer(w, d, err)
	return nil
}

func (s *server) put(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	data, err := receive(w, func() ([]byte, error) { return wire.ReadFile(w, r) })
	if err != nil {
		return err
	}
	out, err := session.Put(r.Context(), r.URL.Query().Get("path"), data)
	out.File = ""
	wire.Answer(w, out, err)
	return nil
}

// A part is the line before Size bytes of data.
type part struct {
	Output *proposal.Output  `json:"output,omitempty"`
	Report *proposal.Report  `json:"report,omitempty"`
	Error  *proposal.Failure `json:"error,omitempty"` // why the session stopped early
	Size   int64             `json:"size"`
}

func (p part) send(w http.ResponseWriter, data io.Reader) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := json.NewEncoder(w).Encode(p); err != nil {
		return err
	}
	_, err := io.CopyN(w, data, p.Size)
	return err
}

// stop ends the session as the end of the context of a local Open does.
func (s *server) stop(w http.ResponseWriter, _ *http.Request, _ gate.Session) error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	wire.Answer(w, struct{}{}, nil)
	return nil
}

// close ends the session and answers with its report and its log.
func (s *server) close(w http.ResponseWriter, _ *http.Request, session gate.Session) error {
	report, err := session.Close()
	<-s.ended
	p := part{Report: &report, Error: proposal.FailureOf(err)}
	if report.Audit == nil {
		defer s.fetch()
		_ = p.send(w, strings.NewReader(""))
		return nil
	}
	f, err := os.Open(report.Audit.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.Size = info.Size()
	if p.send(w, f) != nil {
		panic(http.ErrAbortHandler) // the client must see that it is cut; it can ask again
	}
	if http.NewResponseController(w).Flush() == nil {
		s.fetch()
	}
	return nil
}
