// SPDX-License-Identifier: Apache-2.0

// Package order defines the order of the stages: read, decide, record, prepare the sandbox, run,
// observe, judge, report.
//
// It promises that nothing runs before it was parsed, allowed and recorded on disk;
// that exactly the text that was decided runs; and that after its first failure it does
// nothing more. A denied proposal, a failing test and a killed command are values in
// the Report, never errors.
//
// Everything that gVisor's kernel and the gateway saw of a command is in the log before
// its result, each event as it came, and the result says whether the events are complete.
//
// If a host was granted to a command that runs, each command runs between the gateway's Begin and End, and the
// grants of one command do not apply to another. Without a gateway nothing runs then.
//
// A session's commands may also run in the background, beside others. Each is decided and
// logged like any other before it starts; its events and its result are in the log when they
// come, between the entries of others. It has no network.
//
// A command whose result was kept by an earlier run with the same inputs does not run, if it
// requested that and policy grants it. The log has that result, with the proof of it.
//
// Set-up is a part of the plan that it is given: FindSetupNeed says which proposals need what of it.
// Commands may run before it. One that is recorded for a layer then begins in a new sandbox.
//
// A command that failed because a runtime crashed is run a second time, which the log
// and the Report say: see crashedRuntime.
//
// A command that failed by itself is run on the base of the pull request, too, if there is one:
// after the sandbox of all commands has ended, in another one, decided and logged like any other.
// A comparison says whether the failure is the pull request's: see package baseline.
//
// A command that failed for a reason that is not the pull request's gets a Cause in the
// Report: see package diagnose.
//
// Nothing is logged, shown or kept that has not passed the Redactor.
//
// The package contains no policy. Stages.Run is the order; completeOptions says what each sandbox
// is made of.
package order

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/internal/watch/hosts"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Stages are the stages of one run, which Run or Open calls in order. A stage is never skipped: if
// one that is required is missing, that is a *proposal.StopError (hood.incomplete), and nothing is
// decided, logged or run.
type Stages struct {
	// Checker decides. Required.
	Checker
	// Log is written before and after everything that runs. Required.
	Log journal.Log
	// Redactor is what everything passes before it is logged, shown or kept. Required.
	Redactor *redact.Redactor
	// Unread is the directory for what the sandbox writes, from which Redactor copies what it has
	// searched: see Redactor.CreateRawDir.
	Unread string
	// Lineage decides the programs that commands start. Required.
	Lineage *lineage.ProgramDecider
	// Observer logs what the kernel and the gateway see of commands. Required.
	Observer *observe.Observer
	// Sandbox are the options that are known before the run: see completeOptions.
	Sandbox sandbox.Options
	// Start makes the Runner when a proposal is allowed: StartSandbox, or a test's. Its sandbox starts
	// with the first Run. Required.
	Start func(sandbox.Options) (Runner, error)
	// Now is the clock. Required.
	Now func() time.Time

	// Budget limits the time of all commands of the run together; DefaultBudget if zero.
	Budget time.Duration
	// Network opens the gateway for each command. If it is nil, a run in which a
	// command was granted a host stops before anything runs.
	Network Network
	// NetworkAlways opens the gateway even if no command was granted a host.
	NetworkAlways bool
	// Results, if set, keeps results from run to run.
	Results Results
	// Layers, if set, keeps what the commands of set-up leave.
	Layers SetupLayers
	// Base, if set, is the base of the pull request. Commands that fail are run there, too: see
	// package baseline. Only for plans.
	Base Base
	// Health, if set, counts sandboxes.
	Health Health
	// Progress, if set, is called as each step begins and ends.
	Progress func(Step)
}

// checkComplete returns an error if a stage is missing.
func (st *Stages) checkComplete() error {
	if st.Policy == nil || st.Now == nil {
		return missingStageError("Policy or Now")
	}
	if st.Log == nil || st.Redactor == nil || st.Lineage == nil || st.Observer == nil || st.Start == nil {
		return missingStageError("Log, Redactor, Lineage, Observer or Start")
	}
	return nil
}

func missingStageError(what string) error {
	return &proposal.StopError{Code: "hood.incomplete", Message: "cannot connect the stages: " + what + " is missing",
		Hint: "use package gate, which connects all of them"}
}

// DefaultBudget is the time limit for all commands of one run together.
const DefaultBudget = 20 * time.Minute

// A Step is one thing that begins or has been done, for Progress.
type Step struct {
	Proposal string           // id
	Number   int              // from 1
	Of       int              // 0 in a session, whose proposals are not known before
	Result   *proposal.Result // nil if it begins, or is Refused
	Decision proposal.Decision
	Refused  bool // it does not begin: policy denied it, or it needs approval
	Setup    bool // it is of set-up
}

// Run takes plan through all stages: a session whose proposals are all decided before
// the first one runs. The Report contains all that is known, even with an error.
func (st *Stages) Run(ctx context.Context, plan proposal.Plan, run proposal.Run) (proposal.Report, error) {
	s, err := st.beginSession(run, Bounds{})
	if s == nil {
		report := proposal.Report{Schema: proposal.ReportSchema, Run: run, Records: []proposal.Record{}}
		report.Error = proposal.FailureOf(err)
		return report, err
	}
	if err == nil {
		err = st.Redactor.RefuseSecretIDs(plan)
	}
	if err == nil {
		err = s.decideAll(ctx, plan)
	}
	if err == nil {
		err = s.runAll(ctx)
	}
	if err == nil {
		err = s.compareWorkspace(ctx)
	}
	if err == nil {
		err = s.compareBase(ctx)
	}
	return s.endRun(ctx, err)
}

// decideAll decides every proposal of plan, and writes the decisions to disk before
// anything runs: no log, no run.
func (s *Session) decideAll(ctx context.Context, plan proposal.Plan) (err error) {
	s.records, err = s.stages.Check(ctx, plan)
	if err == nil {
		err = applyApproval(s.records, plan, s.run)
	}
	s.report.Records = s.redactRecords(s.records)
	if err == nil {
		err = s.recordDecisions(0)
	}
	return err
}

// recordDecisions logs the redacted decisions, starting at index from.
func (s *Session) recordDecisions(from int) error {
	for i := from; i < len(s.records); i++ {
		add := s.stages.Log.Append
		if i+1 < len(s.records) || s.report.Records[i].Runnable() {
			add = s.stages.Log.Write // another entry follows before anything runs
		}
		n, err := add("decision", journal.NewDecision(s.report.Records[i]))
		if err != nil {
			return err
		}
		s.records[i].Entry, s.report.Records[i].Entry = n, n
	}
	return nil
}

// runAll runs the allowed proposals in plan order.
func (s *Session) runAll(ctx context.Context) error {
	s.findLayer(ctx, s.records)
	limits, found := LargestLimits(s.records)
	if !found {
		for i := range s.records {
			s.reportStep(i)
		}
		return nil
	}
	running := slices.DeleteFunc(slices.Clone(s.records), s.isReplaced) // set-up from a layer needs no gateway
	if err := s.openSandbox(ctx, limits, GrantedNetwork(running)); err != nil {
		markNotRun(s.records, err)
		return err
	}
	for i := range s.records {
		if !s.records[i].Runnable() {
			s.reportStep(i)
			continue
		}
		if err := s.runProposal(ctx, i); err != nil {
			markNotRun(s.records[i+1:], err)
			return err
		}
	}
	return InterruptionError(ctx)
}

// endRun ends the sandbox, writes the last log entry, and returns the report.
func (s *Session) endRun(ctx context.Context, err error) (proposal.Report, error) {
	if s.runner != nil {
		err = errors.Join(err, s.runner.Close())
	}
	err = errors.Join(err, s.collectBackground(true))
	for i := range s.records {
		s.report.Records[i].Result, s.report.Records[i].Base = s.records[i].Result, s.records[i].Base
	}
	report, wholeErr := s.stages.Redactor.DecideReport(ctx, s.report)
	err = errors.Join(err, wholeErr)
	report.Run.WallMS = s.stages.Now().Sub(report.Run.Start).Milliseconds()
	report.Records = diagnose.DiagnoseRecords(report.Records, report.Run.Unmet)
	report.Totals, report.Hosts = proposal.Total(report.Records), hosts.ListHosts(report.Records)
	report.Error = s.stages.Redactor.Failure(proposal.FailureOf(err))
	return report, errors.Join(err, s.logEnd(report, err))
}

// logEnd writes the last entry, so that a log without it is recognizably cut off.
func (s *Session) logEnd(report proposal.Report, err error) error {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) && strings.HasPrefix(stopped.Code, "audit.") {
		return nil // the log has failed already
	}
	_, logErr := s.stages.Log.Append("end", journal.End{Totals: report.Totals, Error: report.Error})
	return logErr
}

func (st *Stages) budgetOrDefault() time.Duration {
	if st.Budget > 0 {
		return st.Budget
	}
	return DefaultBudget
}

// reportStep reports the progress of record i.
func (s *Session) reportStep(i int) {
	if s.stages.Progress != nil {
		r, of := s.records[i], len(s.records)
		if s.run.Session {
			of = 0
		}
		s.stages.Progress(Step{Proposal: r.Proposal.ID, Number: i + 1, Of: of, Result: r.Result,
			Decision: r.Decision, Refused: !r.Runnable(), Setup: r.Proposal.Phase == proposal.PhaseSetup})
	}
}
