// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// runProposal runs the allowed proposal i, unless there is a reason not to, or what it would give is
// known already: from an earlier run, or from the layer with the effects of set-up.
func (s *Session) runProposal(ctx context.Context, i int) error {
	r := &s.records[i]
	if why := s.reasonNotToRun(ctx, s.records[:i], *r); why != "" {
		r.Result = notRun(why)
		s.reportStep(i)
		return nil
	}
	key, found, err := s.recallResult(ctx, i)
	isReplaced := !found && s.isReplaced(*r)
	if !isReplaced { // else it does not begin
		s.reportStep(i)
	}
	if found {
		return err
	}
	if isReplaced {
		err = s.takeFromLayer(r)
	} else {
		err = s.runRecorded(ctx, i, key)
	}
	if err != nil {
		return err
	}
	s.reportStep(i)
	return nil
}

// runRecorded runs the allowed proposal i between two entries of the log, and a second time if a
// runtime crashed. Its result may be kept under key, unless that is "".
func (s *Session) runRecorded(ctx context.Context, i int, key string) error {
	r := &s.records[i]
	x := s.beginExecution(*r)
	if err := s.recordStart(*r, &x, false); err != nil {
		r.Result = notRun("the audit log could not be written")
		return err
	}
	result, runErr := s.runOnce(ctx, *r, x)
	r.Result = &result
	inShell := r.Proposal.Context != "" && r.Proposal.RunsShell() // which has run the code
	p, crashed := crashedRuntime(result)
	if crashed && !inShell && runErr == nil && ctx.Err() == nil && s.stages.Now().Before(s.deadline) {
		first := attemptOf(result, p)
		if err := s.recordAttempt(*r, first); err != nil {
			return err // the report has the first run's result, and the log has failed
		}
		x = s.beginExecution(*r)
		x.Again = true
		result, runErr = s.runOnce(ctx, *r, x)
		result.Retried = &first
		r.Result = &result
	}
	noteMachineTools(s.records[:i], r)
	addSecretFinding(r)
	r.Result.CacheKey = key
	if runErr == nil {
		s.keepLayer(ctx, i)
	}
	entry, logErr := s.stages.Log.Write("result", journal.NewResult(*r))
	if err := errors.Join(runErr, logErr); err != nil {
		return err
	}
	s.offerResult(*r, entry)
	return nil
}

// beginExecution returns what runs for r, and has the Lineage decide what that starts.
func (s *Session) beginExecution(r proposal.Record) sandbox.Execution {
	x := s.executionOf(r)
	x.Free = s.stages.Lineage.Begin(r)
	return x
}

// recordStart returns when the log has the start of r on disk: only then may x run. Meanwhile the sandbox is made
// ready for x, whose time may be less afterwards.
func (s *Session) recordStart(r proposal.Record, x *sandbox.Execution, beside bool) error {
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		s.runner.Prepare(*x, beside)
	}()
	_, err := s.stages.Log.Append("start", journal.NewStart(r, false))
	<-ready
	s.limitTime(x)
	if err != nil {
		s.stages.Lineage.End(r.Proposal.ID)
	}
	return err
}

// runOnce runs x, which was decided for r, and returns what may leave of its result.
func (s *Session) runOnce(ctx context.Context, r proposal.Record, x sandbox.Execution) (proposal.Result, error) {
	endOutput := s.passOutput(ctx, &x)
	result, err := s.runObserved(ctx, x, r)
	endOutput()
	result, outErr := s.redactResult(ctx, r.Proposal.ID, nameBudget(result, x, r))
	return result, errors.Join(err, outErr)
}

// runObserved runs x between the beginning and the end of what watches it: the Observer, which logs
// what the kernel sees, and the gateway, if there is one. The Lineage ends with them.
func (s *Session) runObserved(ctx context.Context, x sandbox.Execution, r proposal.Record) (proposal.Result, error) {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := s.stages.Observer.Begin(r, s.stages.Redactor.Event, stop); err != nil {
		s.stages.Lineage.End(r.Proposal.ID)
		return notStarted("it could not be observed"), err
	}
	result, err, netErr := s.runConnected(inner, x, stop)
	if inner.Err() != nil {
		err = nil // an interrupted command is a Result; runAll reports the interruption
	}
	seen, seeErr := s.endObservation(ctx, r, result)
	if seen != nil && netErr != nil {
		seen.Complete = false
	}
	result.Observations = seen
	return result, errors.Join(seeErr, err, netErr)
}

// runConnected runs x between the gateway's Begin and End. The first error is the Runner's,
// or says that x was not started; the second says that the gateway did not end it.
func (s *Session) runConnected(
	ctx context.Context, x sandbox.Execution, stop context.CancelCauseFunc,
) (r proposal.Result, runErr, endErr error) {
	if s.link == nil {
		r, runErr = s.runner.Run(ctx, x)
		return r, runErr, nil
	}
	x.Notes = new(sandbox.Notes)
	if err := s.stages.Network.Begin(ctx, x, stop); err != nil {
		never := notStarted("the gateway did not accept it")
		if ctx.Err() != nil {
			never.Detail = "the run was interrupted"
		}
		return never, err, nil
	}
	r, runErr = s.runner.Run(ctx, x)
	return r, runErr, s.stages.Network.End()
}

// endObservation ends what watches the command of r, and returns what was seen of it.
func (s *Session) endObservation(
	ctx context.Context, r proposal.Record, result proposal.Result,
) (*proposal.Observations, error) {
	seen, err := s.stages.Observer.End(ctx, r.Proposal.ID, result.Observations)
	s.stages.Lineage.End(r.Proposal.ID)
	return seen, err
}
