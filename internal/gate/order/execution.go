// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// decidedExecution takes what will run from the analysis, never from the proposal: the
// text that was printed and parsed again, or the argv that was decided.
func decidedExecution(r proposal.Record) sandbox.Execution {
	x := sandbox.Execution{
		ID: r.Proposal.ID, Cwd: r.Proposal.Cwd, Stdin: r.Proposal.Stdin,
		Outputs: r.Proposal.Outputs, Grant: *r.Decision.Grant, Service: r.Proposal.Origin == proposal.OriginService,
		Setup: r.Proposal.Origin != "",
	}
	if p := r.Proposal; p.Context != "" && p.Code != "" {
		x.Cell = &sandbox.Cell{Language: p.Language, Context: p.Context}
		if p.RunsShell() {
			x.Cell.Earlier, x.Cell.Code = r.Analysis.Canonical[:r.Analysis.Begins], r.Analysis.Own()
		} else {
			args := r.Analysis.Commands[0].Args
			x.Cell.Code = args[len(args)-1].Value
			x.Cell.SyntaxOnly = slices.ContainsFunc(r.Analysis.Snippets,
				func(s proposal.Snippet) bool { return s.SyntaxOnly })
		}
	}
	if r.Proposal.RunsShell() {
		x.Text = r.Analysis.Canonical
	} else {
		x.Argv = r.Analysis.Commands[0].Argv()
		x.Launches = r.Analysis.Commands[0].StartsText()
	}
	return x
}

// executionOf returns what was decided for r, within the time that is left for the run. Some is
// always left: writing to the log can outlast the deadline, and no limit means none to a sandbox.
//
// Set-up begins in a sandbox in which nothing has run: what commands before it left, although they should only
// read, does not steer set-up and is not in its layer, and what they read is not what the layer depends on.
// What a session has written stays: set-up then has no network (see confineToBounds), and there is no layer.
func (s *Session) executionOf(r proposal.Record) sandbox.Execution {
	x := decidedExecution(r)
	if r.Proposal.Origin != "" && !s.written && s.isFirstOfSetup(r) {
		x.Grant.Fresh = true
	}
	s.limitTime(&x)
	return x
}

// limitTime lowers the time of x to what is left for the run.
func (s *Session) limitTime(x *sandbox.Execution) {
	if left := max(s.deadline.Sub(s.stages.Now()), time.Millisecond); left < x.Grant.Limits.Wall.Std() {
		x.Grant.Limits.Wall = proposal.Duration(left)
	}
}

// isFirstOfSetup reports whether r is the first command of set-up that runs.
func (s *Session) isFirstOfSetup(r proposal.Record) bool {
	i := slices.IndexFunc(s.records, func(r proposal.Record) bool { return r.Proposal.Origin != "" && r.Runnable() })
	return i >= 0 && s.records[i].Proposal.ID == r.Proposal.ID
}

// nameBudget names the time for all commands together, if it was that which ended x.
func nameBudget(result proposal.Result, x sandbox.Execution, r proposal.Record) proposal.Result {
	if result.Status == proposal.TimedOut && x.Grant.Limits.Wall < r.Decision.Grant.Limits.Wall {
		result.Killed = proposal.KilledBudget
	}
	return result
}

// reasonNotToRun returns why an allowed proposal must not run after all, or nothing.
func (s *Session) reasonNotToRun(ctx context.Context, before []proposal.Record, r proposal.Record) string {
	switch {
	case ctx.Err() != nil:
		return "the run was interrupted"
	case !s.stages.Now().Before(s.deadline):
		return fmt.Sprintf("the run's time budget of %s is used up", s.stages.budgetOrDefault())
	case !CanStart(r):
		return "policy allowed it without a grant or a command"
	}
	for _, id := range r.Proposal.Needs {
		if !hasSucceeded(before, id) {
			if command, onBase := baseline.CommandID(id); onBase {
				return fmt.Sprintf("it needs the earlier command %q, which does not succeed on the base", command)
			}
			return needsText(id)
		}
	}
	if id := failedSetupOf(before, r); id != "" {
		return needsText(id)
	}
	return ""
}

// CanStart is the last check before a start: a proposal without a grant or a command, or with
// anything that could not be analyzed, never runs, whatever a Decider says.
func CanStart(r proposal.Record) bool {
	return r.Decision.Grant != nil && len(r.Analysis.Commands) > 0 && len(r.Analysis.Unknowns) == 0 &&
		r.Analysis.Canonical != ""
}

// hasSucceeded reports whether the proposal id is among records and succeeded.
func hasSucceeded(records []proposal.Record, id string) bool {
	for _, r := range records {
		if r.Proposal.ID == id {
			return r.Outcome() == proposal.OutcomeSucceeded
		}
	}
	return false
}

func notRun(why string) *proposal.Result {
	return &proposal.Result{Status: proposal.NotRun, ExitCode: -1, Detail: why,
		Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
}

// notStarted is the Result of a command whose start is in the log, and which did not start.
func notStarted(why string) proposal.Result {
	r := notRun("it was not started: " + why)
	r.Status = proposal.SandboxFailed
	return *r
}

// markNotRun says in the allowed records that have no result that err stopped the run.
func markNotRun(records []proposal.Record, err error) {
	code := proposal.FailureOf(err).Code
	for i := range records {
		if records[i].Runnable() && records[i].Result == nil {
			records[i].Result = notRun("the run stopped: " + code)
		}
	}
}

// LargestLimits returns the maximum of each limit over all grants, for which the run's
// one sandbox must be created.
func LargestLimits(records []proposal.Record) (proposal.Limits, bool) {
	var bounds proposal.Limits
	found := false
	for _, r := range records {
		if !r.Runnable() || r.Decision.Grant == nil {
			continue
		}
		l := r.Decision.Grant.Limits
		bounds = proposal.Limits{
			Wall: max(bounds.Wall, l.Wall), CPUs: max(bounds.CPUs, l.CPUs), Memory: max(bounds.Memory, l.Memory),
			Pids: max(bounds.Pids, l.Pids), Disk: max(bounds.Disk, l.Disk), Files: max(bounds.Files, l.Files),
			Output: max(bounds.Output, l.Output),
		}
		found = true
	}
	return bounds, found
}
