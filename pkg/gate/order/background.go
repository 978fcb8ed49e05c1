// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/diagnose"
	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxBackground is how many commands of a session may run in the background at once.
const MaxBackground = 8

// A Running is a proposal that was started in the background. Its methods may be called
// concurrently, and while the Session runs other commands.
type Running struct {
	i       int
	record  proposal.Record // redacted, without a Result
	process proposal.Process
	unmet   []proposal.Unmet // see Run.Unmet
	done    chan struct{}    // closed when the next two are set
	result  *proposal.Result
	err     error
}

// Done is closed when the command has ended and its result is in the log, or if it was not
// allowed to run.
func (r *Running) Done() <-chan struct{} { return r.done }

// Record waits until Done is closed. The error is as for Session.Do.
func (r *Running) Record() (proposal.Record, error) {
	<-r.done
	record := r.record
	record.Result = r.result
	record.Cause = diagnose.Of(record, r.unmet)
	return record, r.err
}

// Interrupt sends SIGINT to all processes of the command, if it runs.
func (r *Running) Interrupt() error {
	if r.process == nil {
		return nil
	}
	return r.process.Interrupt()
}

// Kill kills the command, if it runs. by is a Killed constant.
func (r *Running) Kill(by string) {
	if r.process != nil {
		r.process.Kill(by)
	}
}

// Start decides p, records the decision, and starts p in the background if it is allowed. It
// returns when the command has started. ctx is not needed after that, except for WithOutput.
//
// p cannot have outputs, a context, a network or a new sandbox, and cannot be of set-up. The
// errors are as for Do; one more is session.background: too many run already.
func (s *Session) Start(ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval) (*Running, error) {
	if err := s.admit(p, a); err != nil {
		return nil, err
	}
	if err := s.fits(p); err != nil {
		return nil, err
	}
	i := len(s.records)
	err := s.decideOne(ctx, p, a, true)
	r := &Running{i: i, record: s.report.Records[i], unmet: s.report.Run.Unmet, done: make(chan struct{})}
	if err == nil && s.records[i].Runnable() {
		s.changing++
		err = s.launch(ctx, r)
	} else {
		close(r.done)
	}
	s.stopped = err
	return r, err
}

// fits returns why p cannot run in the background.
func (s *Session) fits(p proposal.Proposal) error {
	switch {
	case p.Fresh || len(p.Outputs) > 0 || len(p.Network) > 0 || p.Context != "" || p.Origin != "":
		return &proposal.StopError{Code: "session.proposal", Message: "invalid proposal: a command in the background cannot have outputs, a context, a network or a new sandbox, or be of set-up",
			Hint: "run it in the foreground"}
	case len(s.background) >= MaxBackground:
		return &proposal.StopError{Code: "session.background", Message: fmt.Sprintf("%d commands run in the background already", MaxBackground), Hint: "end one of them first"}
	}
	return nil
}

// busy reports whether a command runs in the background.
func (s *Session) busy() bool { return len(s.background) > 0 }

// launch starts the allowed proposal r in the background, or says why not in its result.
func (s *Session) launch(ctx context.Context, r *Running) error {
	record := s.records[r.i]
	err := s.ready(ctx)
	if err == nil {
		if why := s.h.hindrance(ctx, s.records[:r.i], record, s.deadline); why != "" {
			r.result = notRun(why)
			s.records[r.i].Result = r.result
			close(r.done)
			return nil
		}
		_, err = s.h.p.Log.Append("start", journal.NewStart(record, false))
	}
	if err != nil {
		r.result = notRun("the run stopped: " + proposal.FailureOf(err).Code)
		s.records[r.i].Result = r.result
		close(r.done)
		return err
	}
	s.background = append(s.background, r)
	x := s.h.execution(record, s.deadline)
	end := s.h.live(ctx, &x)
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	err = s.h.p.Observer.Begin(record, s.h.p.Redactor.Event, stop)
	if err == nil {
		if s.h.p.Begin != nil {
			x.Free = s.h.p.Begin(record)
		}
		r.process, err = s.startOn(ctx, x)
	}
	if err == nil {
		context.AfterFunc(inner, func() { r.process.Kill(proposal.KilledRun) })
	}
	go func() {
		defer close(r.done)
		defer stop(nil)
		r.result, r.err = s.h.attend(context.WithoutCancel(ctx), r.process, x, record, err)
		end()
	}()
	return nil // an error is the Running's, which the next call collects
}

// startOn starts x in the sandbox.
func (s *Session) startOn(ctx context.Context, x proposal.Execution) (proposal.Process, error) {
	if starter, ok := s.runner.(Starter); ok {
		return starter.Start(ctx, x)
	}
	return nil, incomplete("a Sandbox that can start commands in the background")
}

// attend waits for the end of a command in the background, and writes its result. err is why
// it could not be started.
func (h *Hood) attend(ctx context.Context, p proposal.Process, x proposal.Execution, record proposal.Record, err error) (*proposal.Result, error) {
	result := notStarted("the sandbox did not accept it")
	if p != nil {
		result, err = p.Result()
	}
	seen, seeErr := h.ended(ctx, record, result)
	result.Observations = seen
	result, outErr := h.released(ctx, record.Proposal.ID, budgeted(result, x, record))
	record.Result = &result
	noted(&record)
	_, logErr := h.p.Log.Append("result", journal.NewResult(record))
	return record.Result, errors.Join(err, seeErr, outErr, logErr)
}

// collect takes over the results of commands in the background that have ended, or, to the
// end of the session, of all of them.
func (s *Session) collect(all bool) (err error) {
	s.background = slices.DeleteFunc(s.background, func(r *Running) bool {
		if !all {
			select {
			case <-r.done:
			default:
				return false
			}
		}
		<-r.done
		s.records[r.i].Result = s.kept(r.result)
		err = errors.Join(err, r.err)
		return true
	})
	return err
}
