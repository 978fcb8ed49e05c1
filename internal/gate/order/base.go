// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Base is the base of a pull request: package gate's, or a test's. It shares nothing that can
// be written with the sandbox of the pull request's code.
type Base interface {
	// Commit returns the full id of the base.
	Commit() string
	// Open writes the base's files and returns their directory, sandbox.Options.Workspace. It is called
	// at most once, after the sandbox of the pull request's code has ended. An error means that nothing can run
	// on the base; it is reported and does not end the run. Close is called after it, whatever it returned.
	Open(ctx context.Context) (workspace string, err error)
	// Layers is Stages.Layers for the base, or nil.
	Layers() SetupLayers
	Close() error
}

// compareBase runs the commands that failed on the base too, in the time that is left, and adds to the
// records what that shows. What goes wrong with the base changes no outcome; only a log that
// cannot be written, and an interruption, end the run.
func (s *Session) compareBase(ctx context.Context) error {
	if s.stages.Base == nil || s.runner == nil {
		return nil
	}
	known := diagnose.DiagnoseRecords(s.finishedRecords(), s.report.Run.Unmet)
	for i, r := range known {
		if reachedLimit(r) {
			s.records[i].Base = &proposal.Comparison{Verdict: proposal.BaseUnknown, Why: "it reached a limit"}
		}
	}
	plan := basePlan(known, s.records)
	if len(plan.Proposals) == 0 && !slices.ContainsFunc(known, baseline.IsIncomplete) {
		return nil
	}
	start := s.stages.Now()
	run := &proposal.BaseRun{Commit: s.stages.Base.Commit(), Records: []proposal.Record{}}
	s.report.Base = run
	if _, err := s.stages.Log.Append("base", journal.Base{Commit: run.Commit}); err != nil {
		return err
	}
	var err error
	if len(plan.Proposals) > 0 {
		runner := s.runner
		s.runner = nil // nothing of the pull request's code runs beside the base
		if err = runner.Close(); err == nil {
			err = s.runOnBase(ctx, plan, run)
		}
	}
	if f := proposal.FailureOf(err); f != nil && ctx.Err() != nil &&
		(f.Code == "run.cancelled" || f.Code == "run.timeout") {
		err = &proposal.StopError{Code: f.Code, Message: "the run ended before the comparison with the base was done",
			Hint: "the results are complete without it; run again to compare"}
		if len(run.Records) == 0 {
			run.Why = "the run ended before it was compared"
		}
	}
	run.WallMS = s.stages.Now().Sub(start).Milliseconds()
	for i, r := range baseline.CompareRecords(known, run, s.report.Run.Unmet) {
		if r.Base != nil {
			s.records[i].Base = r.Base
		}
		if diagnose.IsComparableSetup(r) && hasPassed(run.Records, r.Proposal.ID) {
			s.records[i].Base = &proposal.Comparison{Verdict: proposal.BasePasses}
		}
	}
	return err
}

// reachedLimit reports whether a limit ended r, so that its end says nothing about the code.
func reachedLimit(r proposal.Record) bool {
	return r.Proposal.Origin == "" && r.Decision.Effect == proposal.Allow && r.Result != nil && r.Result.Limit != "" &&
		r.Outcome() == proposal.OutcomeFailed
}

// hasPassed reports whether the command id succeeded on the base.
func hasPassed(there []proposal.Record, id string) bool {
	return slices.ContainsFunc(there, func(r proposal.Record) bool {
		return r.Proposal.ID == baseline.RunID(id) && r.Runnable() && r.Result != nil && r.Result.Succeeded()
	})
}

// finishedRecords returns the records as the report has them, with their results.
func (s *Session) finishedRecords() []proposal.Record {
	list := slices.Clone(s.report.Records)
	for i := range list {
		list[i].Result = s.records[i].Result
	}
	return list
}

// runOnBase runs plan on the base and adds its records to run.
func (s *Session) runOnBase(ctx context.Context, plan proposal.Plan, run *proposal.BaseRun) (err error) {
	left := s.deadline.Sub(s.stages.Now())
	if left <= 0 {
		run.Why = "the run's time is used up"
		return InterruptionError(ctx)
	}
	base := s.stages.Base
	defer func() { err = errors.Join(err, base.Close()) }()
	workspace, err := base.Open(ctx)
	if err != nil {
		run.Why = "it cannot be checked out: " + s.redactedMessage(err)
		return InterruptionError(ctx)
	}
	stages := *s.stages
	stages.Sandbox.Workspace, stages.Sandbox.Pool = workspace, nil // no sandbox waits for these files
	stages.Layers, stages.Results, stages.Base, stages.Budget = base.Layers(), nil, nil, left
	other := &Session{stages: &stages, run: s.run, report: proposal.Report{Run: s.report.Run}, link: s.link}
	other.run.Approval = nil // it is for the pull request's commit
	err = other.decideAll(ctx, plan)
	if err == nil {
		err = other.runAll(ctx)
	}
	if other.runner != nil {
		if closeErr := other.runner.Close(); closeErr != nil {
			return errors.Join(err, closeErr)
		}
	}
	if len(other.report.Records) > 0 && other.report.Records[0].Entry >= 0 {
		run.Records = diagnose.DiagnoseRecords(other.finishedRecords(), s.report.Run.Unmet)
	}
	if err == nil || ctx.Err() != nil || strings.HasPrefix(proposal.FailureOf(err).Code, "audit.") {
		return err
	}
	run.Why = "it cannot run: " + s.redactedMessage(err)
	return nil
}

// redactedMessage returns the message of err, redacted.
func (s *Session) redactedMessage(err error) string {
	return s.stages.Redactor.Failure(proposal.FailureOf(err)).Message
}

// basePlan returns what runs on the base: set-up, also if only that failed and not if only commands before it
// did, the commands among known that are comparable, those that they need, and those that ran before them in
// their sandbox and changed the workspace. The texts are those of records.
func basePlan(known, records []proposal.Record) (plan proposal.Plan) {
	wanted := map[int]bool{}
	needs := map[int][]string{} // what must have succeeded on the base, too
	for i, r := range known {
		if baseline.IsComparable(r) {
			requireEarlier(known, i, wanted, needs)
		}
	}
	last := len(records)
	if !slices.ContainsFunc(known, diagnose.IsComparableSetup) {
		last = slices.Max(append(slices.Collect(maps.Keys(wanted)), -1)) // commands before set-up do not need it
	}
	for i := range max(last, 0) {
		if records[i].Runnable() && records[i].Proposal.Origin != "" {
			wanted[i] = true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(wanted)) {
		p := records[i].Proposal
		p.ID = baseline.RunID(p.ID)
		p.Outputs, p.Cache = nil, false
		p.Needs = slices.Concat(p.Needs, needs[i])
		for k, id := range p.Needs {
			p.Needs[k] = baseline.RunID(id)
		}
		slices.Sort(p.Needs)
		p.Needs = slices.Compact(p.Needs)
		plan.Proposals = append(plan.Proposals, p)
	}
	return plan
}

// requireEarlier adds record i and what it depends on to wanted.
func requireEarlier(known []proposal.Record, i int, wanted map[int]bool, needs map[int][]string) {
	if wanted[i] {
		return
	}
	wanted[i] = true
	for _, id := range known[i].Proposal.Needs {
		if k := slices.IndexFunc(known[:i], func(r proposal.Record) bool { return r.Proposal.ID == id }); k >= 0 {
			requireEarlier(known, k, wanted, needs)
		}
	}
	for k := i - 1; k >= 0 && !isNew(known[k+1]); k-- {
		r := known[k]
		if r.Proposal.Origin != "" || r.Result == nil || r.Result.Status == proposal.NotRun || !leavesState(r) {
			continue
		}
		requireEarlier(known, k, wanted, needs)
		if r.Result.Succeeded() {
			needs[i] = append(needs[i], r.Proposal.ID)
		}
	}
}

// isNew reports whether r began in a new sandbox.
func isNew(r proposal.Record) bool { return r.Result != nil && r.Result.NewSandbox }

// leavesState reports whether later commands in the sandbox of r may depend on it.
func leavesState(r proposal.Record) bool {
	return len(r.Result.Changes.Files)+r.Result.Changes.Omitted > 0 ||
		isNew(r) && r.Decision.Grant != nil && r.Decision.Grant.Fresh
}
