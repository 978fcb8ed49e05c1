// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxBackground is how many commands of a session may run in the background at once.
const MaxBackground = 8

// A Running is a proposal that was started in the background. Its methods may be called
// concurrently, and while the Session runs other commands.
type Running struct {
	i       int
	record  proposal.Record // redacted, without a Result
	process sandbox.Process
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
	record.Cause = diagnose.CauseOf(record, r.unmet)
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
// p cannot have outputs, a network or a new sandbox, and cannot be of set-up. Code of one context must not run twice at
// once. The errors are as for Do; one more is session.background: too many run already.
func (s *Session) Start(ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval) (*Running, error) {
	p = s.withFacts(p)
	if err := s.admitProposal(p, a); err != nil {
		return nil, err
	}
	if err := s.checkBackground(p); err != nil {
		return nil, err
	}
	i := len(s.records)
	err := s.decideOne(ctx, p, a, true)
	r := &Running{i: i, record: s.report.Records[i], unmet: s.report.Run.Unmet, done: make(chan struct{})}
	if err == nil && s.records[i].Runnable() {
		s.changing++
		s.written = true
		err = s.startBackground(ctx, r)
	} else {
		close(r.done)
	}
	s.stopped = err
	return r, err
}

// checkBackground returns why p cannot run in the background.
func (s *Session) checkBackground(p proposal.Proposal) error {
	switch {
	case p.Fresh || len(p.Outputs) > 0 || len(p.Network) > 0 || p.Origin != "":
		return &proposal.StopError{Code: "session.proposal",
			Message: "invalid proposal: a command in the background cannot have outputs, a network or a new sandbox, or be of set-up",
			Hint:    "run it in the foreground"}
	case len(s.background) >= MaxBackground:
		return &proposal.StopError{Code: "session.background",
			Message: fmt.Sprintf("%d commands run in the background already", MaxBackground),
			Hint:    "end one of them first"}
	}
	return nil
}

// isBusy reports whether a command runs in the background.
func (s *Session) isBusy() bool { return len(s.background) > 0 }

// startBackground starts the allowed proposal r in the background, or says why not in its result.
func (s *Session) startBackground(ctx context.Context, r *Running) error {
	record := s.records[r.i]
	err := s.ensureSandbox(ctx)
	var x sandbox.Execution
	if err == nil {
		if why := s.reasonNotToRun(ctx, s.records[:r.i], record); why != "" {
			r.result = notRun(why)
			s.records[r.i].Result = r.result
			close(r.done)
			return nil
		}
		x = s.beginExecution(record)
		err = s.recordStart(record, &x, true)
	}
	if err != nil {
		r.result = notRun("the run stopped: " + proposal.FailureOf(err).Code)
		s.records[r.i].Result = r.result
		close(r.done)
		return err
	}
	s.background, s.beside = append(s.background, r), true
	x.Input = inputOf(ctx)
	end := s.passOutput(ctx, &x)
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	err = s.stages.Observer.Begin(record, s.stages.Redactor.Event, stop)
	if err == nil {
		r.process, err = s.runner.Start(ctx, x)
	}
	if err == nil {
		context.AfterFunc(inner, func() { r.process.Kill(proposal.KilledRun) })
	}
	go func() {
		defer close(r.done)
		defer stop(nil)
		r.result, r.err = s.awaitBackground(context.WithoutCancel(ctx), r.process, x, record, err)
		end()
	}()
	return nil // an error is the Running's, which the next call collects
}

// awaitBackground waits for the end of a command in the background, and writes its result. err is why
// it could not be started.
func (s *Session) awaitBackground(
	ctx context.Context, p sandbox.Process, x sandbox.Execution, record proposal.Record, err error,
) (*proposal.Result, error) {
	result := notStarted("the sandbox did not accept it")
	if p != nil {
		result, err = p.Result()
		err = errors.Join(err, s.runner.AddChanges(p, &result))
	}
	seen, seeErr := s.endObservation(ctx, record, result)
	result.Observations = seen
	result, outErr := s.redactResult(ctx, record.Proposal.ID, nameBudget(result, x, record))
	record.Result = &result
	addSecretFinding(&record)
	_, logErr := s.stages.Log.Write("result", journal.NewResult(record))
	return record.Result, errors.Join(err, seeErr, outErr, logErr)
}

// collectBackground takes over the results of commands in the background that have ended, or, to the
// end of the session, of all of them.
func (s *Session) collectBackground(all bool) (err error) {
	s.background = slices.DeleteFunc(s.background, func(r *Running) bool {
		if !all {
			select {
			case <-r.done:
			default:
				return false
			}
		}
		<-r.done
		if r.result != nil {
			s.addChanges(*r.result)
		}
		s.records[r.i].Result = s.shortenResult(r.result)
		err = errors.Join(err, r.err)
		return true
	})
	return err
}
