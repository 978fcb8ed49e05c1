// SPDX-License-Identifier: Apache-2.0

// Package order defines the order of the stages: parse, decide, record, run, record, report.
//
// It promises that nothing runs before it was parsed, allowed and recorded on disk;
// that exactly the text that was decided runs; and that after its first failure it does
// nothing more. A denied proposal, a failing test and a killed command are values in
// the Report, never errors.
//
// Everything that gVisor's kernel and the gateway saw of a command is in the log before
// its result, each event as it came, and the result says whether the events are complete.
//
// If a host was granted, each command runs between the gateway's Begin and End, and the
// grants of one command do not apply to another. Without a gateway nothing runs then.
//
// A session's commands may also run in the background, beside others. Each is decided and
// logged like any other before it starts; its events and its result are in the log when they
// come, between the entries of others. It has no network.
//
// A command whose result was kept by an earlier run with the same inputs does not run, if it
// requested that and policy grants it. The log has that result, with the proof of it.
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
// The package contains no policy and does not access the disk; its stages do.
package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/diagnose"
	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/observe"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Decider is the policy: pkg/policy's Engine, or a test's.
type Decider interface {
	// Decide decides one proposal. An error means that policy could not answer; then
	// nothing runs.
	Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error)
}

// A Runner is the sandbox of one run: pkg/sandbox's Runner, or a test's.
type Runner interface {
	// Run runs x to its end. An error means that the outcome is unknown.
	Run(ctx context.Context, x proposal.Execution) (proposal.Result, error)
	Files
	Close() error
}

// A Starter is a Runner that can run commands in the background, too.
type Starter interface {
	// Start starts x beside the commands of Run. A command that does not start is a Process
	// that has ended; an error means the same as Run's. Close ends it.
	Start(ctx context.Context, x proposal.Execution) (proposal.Process, error)
}

// Shells is a Runner whose shells keep their state from cell to cell.
type Shells interface {
	// Earlier returns what the live shell of a context has run, or nil if there is none.
	Earlier(language, context string) *proposal.Earlier
}

// Files moves files between two commands of a session. The Result's Outputs and Changes
// describe what it did; files that are not available are refused there. An error means
// the same as Run's.
type Files interface {
	// Put writes a file of the workspace.
	Put(ctx context.Context, path string, data []byte) (proposal.Result, error)
	// Take copies a file out, to the path called name among the artifacts.
	Take(ctx context.Context, name, path string) (proposal.Result, error)
	// List lists the files that match pattern in the Result's Changes.
	List(ctx context.Context, pattern string) (proposal.Result, error)
	// Diff compares the files at paths, or all, with those that the run began with. Their
	// contents are copied as Take does, and have no Text yet.
	Diff(ctx context.Context, name string, paths []string) (proposal.Diff, error)
}

// A Network is the gateway of one run: pkg/egress's Gateway, or a test's. Its errors
// are StopErrors and end the run.
type Network interface {
	// Open creates the network link. It is called before the sandbox is created, if a
	// command that will run was granted an entry, or Parts.NetworkAlways is set; granted is
	// the list of all such entries. Without it no other method is called.
	Open(ctx context.Context, granted []string) error
	// Begin allows x, and only x, as much as x.Grant says: the grants of other commands
	// no longer apply. It is called before every command, including those without a
	// grant of a host, so that their attempts are attributed to them.
	Begin(ctx context.Context, x proposal.Execution) error
	// End closes every connection of the command, and returns when all events about
	// them have been delivered. It is called once after each successful Begin, when
	// nothing of the command runs any more.
	End() error
}

// Parts are the stages that a Hood calls in order. Parse, Policy and Now are required.
// Run also requires all of Sandbox, Log, Observer and Redactor.
type Parts struct {
	Parse  func(proposal.Proposal) proposal.Analysis
	Policy Decider
	Now    func() time.Time
	// Sandbox creates the Runner when the first proposal is allowed, for the largest
	// granted limits.
	Sandbox func(proposal.Limits) (Runner, error)
	Log     journal.Log
	// Observer receives from the Runner what the commands really do; its See must be among
	// the Runner's options. It logs only what has passed Redactor.
	Observer *observe.Observer
	// Redactor is what everything passes before it is logged, shown or kept.
	Redactor Redactor

	// Budget limits the time of all commands of the run together; DefaultBudget if zero.
	Budget time.Duration
	// Ceiling lowers the limits that policy grants: each field that is set is the
	// maximum for every command. It never raises a limit.
	Ceiling proposal.Limits
	// Network opens the gateway for each command. If it is nil, a run in which a
	// command was granted a host stops before anything runs.
	Network Network
	// NetworkAlways opens the gateway even if no command was granted a host.
	NetworkAlways bool
	// Advise, if set, finds what would be allowed instead of a refused proposal. Only the
	// Alternatives of the Reasons that it returns are used. It must be deterministic: see
	// Redecide.
	Advise func(context.Context, proposal.Proposal, proposal.Analysis, proposal.Decision) proposal.Decision
	// Results, if set, keeps results from run to run.
	Results Results
	// Layers, if set, keeps what the commands of set-up leave.
	Layers Layers
	// Base, if set, is the base of the pull request. Commands that fail are run there, too: see
	// package baseline. Only for plans.
	Base Base
	// Begin, if set, is called before each command starts, for callers that answer the
	// sandbox's questions about it. It returns Execution.Free.
	Begin func(proposal.Record) bool
	// End, if set, is called after each command has ended, with its id.
	End func(id string)
	// Progress, if set, is called as each step begins and ends.
	Progress func(Step)
}

// A Hood decides and runs plans. New returns one; the zero Hood is not usable.
type Hood struct {
	p           Parts
	networkOpen bool // Network was opened
}

// New returns a Hood of p. A missing part is a *proposal.StopError (hood.incomplete); a
// stage is never skipped. If p has none of the parts that only Run requires, the Hood
// decides and Run returns an error.
func New(p Parts) (*Hood, error) {
	if p.Parse == nil || p.Policy == nil || p.Now == nil {
		return nil, incomplete("Parse, Policy or Now")
	}
	if given := p.running(); given > 0 && given < runningParts {
		return nil, incomplete("Sandbox, Log, Observer or Redactor")
	}
	return &Hood{p: p}, nil
}

// runningParts is how many parts only Run needs.
const runningParts = 4

// running counts how many of them p has.
func (p Parts) running() (given int) {
	for _, there := range []bool{p.Sandbox != nil, p.Log != nil, p.Observer != nil, p.Redactor != nil} {
		if there {
			given++
		}
	}
	return given
}

func incomplete(what string) error {
	return &proposal.StopError{Code: "hood.incomplete", Message: "cannot connect the stages: " + what + " is missing", Hint: "use package gate, which connects all of them"}
}

// DefaultBudget is the time limit for all commands of one run together.
const DefaultBudget = 20 * time.Minute

// A Step is one thing that the hood begins or has done, for Progress.
type Step struct {
	Proposal string // id
	Number   int    // from 1
	Of       int
	Result   *proposal.Result // nil if it begins, or is Refused
	Decision proposal.Decision
	Refused  bool // it does not begin: policy denied it, or it needs approval
	Setup    bool // it is of set-up
}

// Check parses and decides every proposal of plan and runs nothing. An Invalid proposal is
// denied without asking policy. With an error every Record is denied.
func (h *Hood) Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error) {
	records := make([]proposal.Record, len(plan.Proposals))
	for i, p := range plan.Proposals {
		records[i] = proposal.Record{Proposal: p, Analysis: h.p.Parse(p), Entry: -1}
		var err error
		if d, refused := p.Refusal(); refused {
			records[i].Decision = d
			continue
		}
		if records[i].Decision, err = h.p.Policy.Decide(ctx, p, records[i].Analysis); err != nil {
			denyAll(records, plan, err)
			return records, fmt.Errorf("cannot decide proposal %q: %w", p.ID, err)
		}
		lower(records[i].Decision.Grant, h.p.Ceiling)
		h.advise(ctx, &records[i])
	}
	unprobed(records)
	return records, nil
}

// denyAll denies every record of a plan that policy could not decide; decisions already
// made are void.
func denyAll(records []proposal.Record, plan proposal.Plan, err error) {
	f := proposal.FailureOf(err)
	for i, p := range plan.Proposals {
		records[i].Proposal, records[i].Entry = p, -1
		records[i].Decision = proposal.Denied(f.Code, "policy could not decide this plan", f.Hint)
		records[i].Decision.Reasons[0].Retry = retryAfter(f.Code)
	}
}

// Run takes plan through all stages: a session whose proposals are all decided before
// the first one runs. The Report contains all that is known, even with an error.
func (h *Hood) Run(ctx context.Context, plan proposal.Plan, run proposal.Run) (proposal.Report, error) {
	s, err := h.begin(run, Bounds{})
	if s == nil {
		return proposal.Report{Schema: proposal.ReportSchema, Run: run, Records: []proposal.Record{}, Error: proposal.FailureOf(err)}, err
	}
	if err == nil {
		err = h.p.Redactor.Named(plan)
	}
	if err == nil {
		err = s.decide(ctx, plan)
	}
	if err == nil {
		err = s.execute(ctx)
	}
	if err == nil {
		err = s.compare(ctx)
	}
	if err == nil {
		err = s.runBase(ctx)
	}
	return s.end(ctx, err)
}

// decide decides every proposal of plan, and writes the decisions to disk before
// anything runs: no log, no run.
func (s *Session) decide(ctx context.Context, plan proposal.Plan) (err error) {
	s.records, err = s.h.Check(ctx, plan)
	if err == nil {
		err = approve(s.records, plan, s.run)
	}
	s.report.Records = s.h.redacted(s.records)
	if err == nil {
		err = s.record(0)
	}
	return err
}

// record logs the redacted decisions, starting at index from.
func (s *Session) record(from int) error {
	for i := from; i < len(s.records); i++ {
		add := s.h.p.Log.Append
		if i+1 < len(s.records) || s.report.Records[i].Runnable() {
			add = s.h.p.Log.Write // another entry follows before anything runs
		}
		n, err := add("decision", journal.NewDecision(s.report.Records[i]))
		if err != nil {
			return err
		}
		s.records[i].Entry, s.report.Records[i].Entry = n, n
	}
	return nil
}

// execute runs the allowed proposals in plan order.
func (s *Session) execute(ctx context.Context) error {
	s.findLayer(ctx, s.records)
	limits, any := Largest(s.records)
	if !any {
		for i := range s.records {
			s.h.reportStep(s.records, i)
		}
		return nil
	}
	if err := s.start(ctx, limits, Granted(s.records)); err != nil {
		markAll(s.records, err)
		return err
	}
	for i := range s.records {
		if !s.records[i].Runnable() {
			s.h.reportStep(s.records, i)
			continue
		}
		if err := s.next(ctx, i); err != nil {
			markAll(s.records[i+1:], err)
			return err
		}
	}
	return Interruption(ctx)
}

// start opens the network, if something was granted, and creates the sandbox.
func (s *Session) start(ctx context.Context, limits proposal.Limits, granted []string) (err error) {
	if err := s.h.connect(ctx, granted); err != nil {
		return err
	}
	if s.runner, err = s.h.p.Sandbox(limits); err != nil {
		return err
	}
	s.deadline = s.h.p.Now().Add(s.h.budget())
	return nil
}

// next runs the allowed proposal i, unless hindrance returns a reason not to.
func (s *Session) next(ctx context.Context, i int) error {
	if why := s.h.hindrance(ctx, s.records[:i], s.records[i], s.deadline); why != "" {
		s.records[i].Result = notRun(why)
		s.h.reportStep(s.records, i)
		return nil
	}
	key, found, err := s.recall(ctx, i)
	if found {
		s.h.reportStep(s.records, i)
		return err
	}
	s.h.reportStep(s.records, i)
	if err := s.outcome(ctx, i, key); err != nil {
		return err
	}
	s.h.reportStep(s.records, i)
	return nil
}

// end ends the sandbox, writes the last log entry, and returns the report.
func (s *Session) end(ctx context.Context, err error) (proposal.Report, error) {
	if s.runner != nil {
		err = errors.Join(err, s.runner.Close())
	}
	err = errors.Join(err, s.collect(true))
	for i := range s.records {
		s.report.Records[i].Result, s.report.Records[i].Base = s.records[i].Result, s.records[i].Base
	}
	report, wholeErr := s.h.p.Redactor.Whole(ctx, s.report)
	err = errors.Join(err, wholeErr)
	report.Run.WallMS = s.h.p.Now().Sub(report.Run.Start).Milliseconds()
	report.Records = diagnose.Records(report.Records, report.Run.Unmet)
	report.Totals, report.Hosts = proposal.Total(report.Records), proposal.HostsOf(report.Records)
	report.Error = s.h.p.Redactor.Failure(proposal.FailureOf(err))
	return report, errors.Join(err, s.h.conclude(report, err))
}

// one runs one allowed proposal between two entries of the log, and a second time if a
// runtime crashed. Its result may be kept under key, unless that is "". ran is called before the
// result is in the log.
func (h *Hood) one(ctx context.Context, runner Runner, r *proposal.Record, deadline time.Time, key string, ran func()) error {
	if _, err := h.p.Log.Append("start", journal.NewStart(*r, false)); err != nil {
		r.Result = notRun("the audit log could not be written")
		return err
	}
	result, runErr := h.run(ctx, runner, *r, deadline, false)
	r.Result = &result
	inShell := r.Proposal.Context != "" && r.Proposal.RunsShell() // which has run the code
	if p, crashed := crashedRuntime(result); crashed && !inShell && runErr == nil && ctx.Err() == nil && h.p.Now().Before(deadline) {
		first := attempt(result, p)
		if err := h.announce(*r, first); err != nil {
			return err // the report has the first run's result, and the log has failed
		}
		result, runErr = h.run(ctx, runner, *r, deadline, true)
		result.Retried = &first
		r.Result = &result
	}
	noted(r)
	r.Result.CacheKey = key
	if runErr == nil {
		ran()
	}
	entry, logErr := h.p.Log.Write("result", journal.NewResult(*r))
	if err := errors.Join(runErr, logErr); err != nil {
		return err
	}
	h.keep(*r, entry)
	return nil
}

// run runs what was decided for r, within the time that is left for the run.
func (h *Hood) run(ctx context.Context, runner Runner, r proposal.Record, deadline time.Time, again bool) (proposal.Result, error) {
	x := h.execution(r, deadline)
	x.Again = again
	end := h.live(ctx, &x)
	result, err := h.observed(ctx, runner, x, r)
	end()
	result, outErr := h.released(ctx, r.Proposal.ID, budgeted(result, x, r))
	return result, errors.Join(err, outErr)
}

// execution returns what was decided for r, within the time that is left until deadline. Some is
// always left: writing to the log can outlast the deadline, and no limit means none to a sandbox.
func (h *Hood) execution(r proposal.Record, deadline time.Time) proposal.Execution {
	x := executionOf(r)
	if left := max(deadline.Sub(h.p.Now()), time.Millisecond); left < x.Grant.Limits.Wall.Std() {
		x.Grant.Limits.Wall = proposal.Duration(left)
	}
	return x
}

// budgeted names the time for all commands together, if it was that which ended x.
func budgeted(result proposal.Result, x proposal.Execution, r proposal.Record) proposal.Result {
	if result.Status == proposal.TimedOut && x.Grant.Limits.Wall < r.Decision.Grant.Limits.Wall {
		result.Killed = proposal.KilledBudget
	}
	return result
}

// observed runs x under observation by the Observer.
func (h *Hood) observed(ctx context.Context, runner Runner, x proposal.Execution, r proposal.Record) (proposal.Result, error) {
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := h.p.Observer.Begin(r, h.p.Redactor.Event, stop); err != nil {
		return notStarted("it could not be observed"), err
	}
	if h.p.Begin != nil {
		x.Free = h.p.Begin(r)
	}
	result, err, netErr := h.within(inner, runner, x)
	if inner.Err() != nil {
		err = nil // an interrupted command is a Result; execute reports the interruption
	}
	seen, seeErr := h.ended(ctx, r, result)
	if seen != nil && netErr != nil {
		seen.Complete = false
	}
	result.Observations = seen
	return result, errors.Join(seeErr, err, netErr)
}

// ended ends the observation of a command.
func (h *Hood) ended(ctx context.Context, r proposal.Record, result proposal.Result) (*proposal.Observations, error) {
	seen, err := h.p.Observer.End(ctx, r.Proposal.ID, result.Observations)
	if h.p.End != nil {
		h.p.End(r.Proposal.ID)
	}
	return seen, err
}

// conclude writes the last entry, so that a log without it is recognizably cut off.
func (h *Hood) conclude(report proposal.Report, err error) error {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) && strings.HasPrefix(stopped.Code, "audit.") {
		return nil // the log has failed already
	}
	_, logErr := h.p.Log.Append("end", journal.End{Totals: report.Totals, Error: report.Error})
	return logErr
}

func (h *Hood) budget() time.Duration {
	if h.p.Budget > 0 {
		return h.p.Budget
	}
	return DefaultBudget
}

func (h *Hood) reportStep(records []proposal.Record, i int) {
	if h.p.Progress != nil {
		r := records[i]
		h.p.Progress(Step{Proposal: r.Proposal.ID, Number: i + 1, Of: len(records), Result: r.Result, Decision: r.Decision, Refused: !r.Runnable(),
			Setup: r.Proposal.Phase == proposal.PhaseSetup})
	}
}
