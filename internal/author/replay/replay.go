// SPDX-License-Identifier: Apache-2.0

// Package replay decides past runs again under another policy, and suggests a
// policy that allows what they did.
//
// The past is read from audit logs and reports. All of it may be untrusted: it is
// read within bounds, and a log is read only if it verifies, unless the caller sets
// Unverified. Unsigned entries of a log are never used.
//
// It promises that each proposal is parsed and decided as in a run, and that the
// programs a command started and the connections it made are judged under the grant
// of the new policy. Facts that the past does not have in full are counted and
// never guessed: a program whose path was truncated, requests that were only
// counted, or what a command that would now be denied would have done.
//
// It does not protect against a well-formed log with false content: with a key that
// is not trusted, anyone could have written the log. And a command that is granted
// something else may behave differently; only a run shows that.
package replay

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Judge decides: internal/policy's Engine, or a test's. It must be safe for concurrent use.
type Judge interface {
	Decide(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error)
	Exec(context.Context, proposal.Exec) (proposal.ExecDecision, error)
	// Start decides on an argv that a process of a text is about to start.
	Start(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error)
	// DecideProgram decides on a program that starts under another name, by the added layers.
	DecideProgram(context.Context, proposal.Proposal, proposal.Analysis) (d proposal.Decision, decided bool, err error)
	Egress(context.Context, proposal.Egress) (proposal.EgressDecision, error)
	// Workspace is where its decisions have the workspace, and what they say about files there.
	Workspace() facts.Workspace
}

// The kinds of decisions.
const (
	KindProposal = "proposal"
	KindExec     = "exec"
	KindEgress   = "egress"
	KindGrant    = "grant" // limits and programs of a proposal whose decision is unchanged
)

// An Outcome is the result of deciding the past under another policy.
type Outcome struct {
	Runs      int `json:"runs"`
	Proposals int `json:"proposals"`
	Execs     int `json:"execs"`  // different ones, counted per command
	Egress    int `json:"egress"` // steps of connections, different ones
	// Moot counts the programs and connections of commands that would not run.
	Moot int `json:"moot"`
	// Omitted counts the programs and connections that the past does not have in full.
	Omitted int      `json:"omitted"`
	Changes []Change `json:"changes"` // in the order of the past
	// Decisions is the number of decisions made in Took. Repeated questions are
	// answered from a cache.
	Decisions int           `json:"decisions"`
	Took      time.Duration `json:"-"`
}

// A Change is one decision that would be different.
type Change struct {
	Kind  string `json:"kind"`
	Run   string `json:"run"`
	ID    string `json:"id"`   // of the proposal
	Text  string `json:"text"` // the command, the program, or the destination of the connection
	Times int    `json:"times"`
	From  Answer `json:"from"`
	To    Answer `json:"to"`
	// Less says that a grant becomes less; the messages have the difference.
	Less bool `json:"less,omitempty"`
}

// IsStricter reports whether less would be allowed than was.
func (c Change) IsStricter() bool {
	return c.Kind == KindGrant && c.Less || effectRank(c.To.Effect) < effectRank(c.From.Effect)
}

// An Answer is a past or new decision.
type Answer struct {
	// Effect is "allow", "ask" or "deny"; or "stop" if policy failed, which would
	// have ended a run.
	Effect string `json:"effect"`
	// Rule is the first rule that refuses or asks; for "allow", the first that allows.
	Rule    string `json:"rule"`
	Message string `json:"message,omitempty"`
}

func effectRank(effect string) int {
	return slices.Index([]string{"stop", "deny", "ask", "allow"}, effect)
}

// Redecide decides past again, on all processors. It calls progress, which may be nil,
// with the number of proposals done; the calls may be concurrent. A policy.Engine decides each run
// under the run's Context. An error means that ctx ended, or that a run has a Context that no run can have.
func Redecide(ctx context.Context, past Past, judge Judge, progress func(done int)) (Outcome, error) {
	jobs, err := past.listJobs(judge)
	if err != nil {
		return Outcome{}, err
	}
	return redecideJobs(ctx, past, jobs, progress)
}

// Compare decides past by two judges, and returns what the second decides otherwise. What was decided in the past does
// not count. Otherwise it is like Redecide.
func Compare(ctx context.Context, past Past, before, after Judge, progress func(done int)) (Outcome, error) {
	jobs, err := past.listJobs(after)
	if err != nil {
		return Outcome{}, err
	}
	earlier, err := past.listJobs(before)
	if err != nil {
		return Outcome{}, err
	}
	for i := range jobs {
		jobs[i].before = earlier[i].judge
	}
	return redecideJobs(ctx, past, jobs, progress)
}

func redecideJobs(ctx context.Context, past Past, jobs []job, progress func(done int)) (Outcome, error) {
	outcomes := make([]Outcome, len(jobs))
	var next, done atomic.Int64
	start := time.Now()
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				outcomes[i] = jobs[i].redecideJob(ctx, jobs[i].judge, past.parse)
				if n := done.Add(1); progress != nil {
					progress(int(n))
				}
			}
		})
	}
	group.Wait()
	all := Outcome{Runs: len(past.Runs), Changes: []Change{}, Took: time.Since(start)}
	for _, o := range outcomes {
		all.addOutcome(o)
	}
	return all, ctx.Err()
}

func (o *Outcome) addOutcome(b Outcome) {
	o.Proposals += b.Proposals
	o.Execs += b.Execs
	o.Egress += b.Egress
	o.Moot += b.Moot
	o.Omitted += b.Omitted
	o.Decisions += b.Decisions
	o.Changes = append(o.Changes, b.Changes...)
}

// A job is one proposal of one run.
type job struct {
	run    string
	act    Act
	judge  Judge
	before Judge // whose decisions take the place of the past's, or nil
}

// listJobs returns the proposals of all runs, each with a judge that knows what its run was about.
// Runs that policy cannot tell apart share one, and its answers.
func (p Past) listJobs(judge Judge) ([]job, error) {
	var jobs []job
	shared := map[string]Judge{}
	for _, r := range p.Runs {
		under, digest := judge, ""
		if e, ok := judge.(*policy.Engine); ok {
			about, err := e.WithContext(r.Context)
			if err != nil {
				return nil, newStopError(codeMalformed, fmt.Sprintf("the run of %q has an invalid context", r.Source),
					"leave this file out", err)
			}
			under, digest = about, about.ReuseDigest()
		}
		if shared[digest] == nil {
			shared[digest] = &decisionCache{Judge: under}
		}
		for _, d := range r.Acts {
			jobs = append(jobs, job{run: r.ID, act: d, judge: shared[digest]})
		}
	}
	return jobs, nil
}

func (j job) redecideJob(ctx context.Context, judge Judge, parse func(proposal.Proposal) proposal.Analysis) Outcome {
	o := Outcome{Omitted: j.act.Omitted}
	var errBefore error
	if j.before != nil {
		errBefore = o.decideBefore(ctx, &j, parse)
	}
	d, err := judge.Decide(ctx, j.act.Proposal, j.act.Analysis)
	o.AddDecisions(j.run, j.act, errBefore, d, err)
	if err != nil || !j.wouldRun(d) {
		o.Moot += len(j.act.Execs) + len(j.act.Flows)
		return o
	}
	gate := j.newGate(judge, d, parse)
	for _, x := range j.act.Execs {
		o.redecideExec(ctx, j, x, *d.Grant, gate)
	}
	for _, f := range j.act.Flows {
		o.redecideEgress(ctx, j, f, *d.Grant, judge)
	}
	return o
}

// AddDecisions adds the difference between the decision of act, which is of run, and another one. The errors are those
// of decisions that could not be made.
func (o *Outcome) AddDecisions(run string, act Act, errBefore error, to proposal.Decision, err error) {
	o.Proposals++
	o.Decisions++
	j := job{run: run, act: act}
	o.compareAnswers(j, KindProposal, act.Text(), 1, answerOf(act.Decision, errBefore), answerOf(to, err))
	if err == nil && errBefore == nil {
		o.compareGrants(j, to)
	}
}

// wouldRun reports whether the command runs if it is decided so.
func (j job) wouldRun(d proposal.Decision) bool {
	return d.Grant != nil && d.Effect != proposal.Deny && (d.Effect != proposal.Ask || j.act.Approved)
}

func (j job) newGate(
	judge Judge, d proposal.Decision, parse func(proposal.Proposal) proposal.Analysis,
) *lineage.ProgramDecider {
	gate := &lineage.ProgramDecider{Exec: judge.Exec, Analyze: parse, Start: judge.Start,
		DecideProgram: judge.DecideProgram, Confine: policy.Confine, Workspace: judge.Workspace()}
	gate.Begin(j.recordOf(d))
	return gate
}

// decideBefore replaces the decisions of j by those of j.before. Programs and connections of a command that would not
// run are left out.
func (o *Outcome) decideBefore(
	ctx context.Context, j *job, parse func(proposal.Proposal) proposal.Analysis,
) error {
	d, err := j.before.Decide(ctx, j.act.Proposal, j.act.Analysis)
	j.act.Decision = d
	if err != nil || !j.wouldRun(d) {
		o.Moot += len(j.act.Execs) + len(j.act.Flows)
		j.act.Execs, j.act.Flows = nil, nil
		return err
	}
	gate := j.newGate(j.before, d, parse)
	j.act.Execs, j.act.Flows = slices.Clone(j.act.Execs), slices.Clone(j.act.Flows)
	for i, x := range j.act.Execs {
		decided, err := gate.DecideExec(ctx, j.askedExec(x, *d.Grant, gate))
		j.act.Execs[i].Decision = orRefusal(decided, err)
	}
	for i, f := range j.act.Flows {
		decided, err := j.before.Egress(ctx, j.askedEgress(f, *d.Grant))
		if j.act.Flows[i].Decision = decided; err != nil {
			j.act.Flows[i].Decision = proposal.EgressDecision{Effect: proposal.Deny}
		}
	}
	return nil
}

// orRefusal is d, or a refusal if it could not be made: nothing starts without a decision.
func orRefusal(d proposal.ExecDecision, err error) proposal.ExecDecision {
	if err != nil {
		return proposal.ExecDecision{Effect: proposal.Deny}
	}
	return d
}

func (o *Outcome) compareAnswers(j job, kind, text string, times int, from, to Answer) {
	if from.Effect != to.Effect {
		o.Changes = append(o.Changes, Change{Kind: kind, Run: j.run, ID: j.act.Proposal.ID, Text: text, Times: times,
			From: from, To: to})
	}
}

// recordOf returns the proposal as it would run under the decision d.
func (j job) recordOf(d proposal.Decision) proposal.Record {
	r := proposal.Record{Proposal: j.act.Proposal, Analysis: j.act.Analysis, Decision: d}
	if j.act.Approved {
		r.Approval = &proposal.Approval{}
	}
	return r
}

// gatedExec returns x as the gate would judge it. A program started by a text's process
// is compared with the text; the record has neither the inner text nor the full PATH.
func gatedExec(x proposal.Exec, gate *lineage.ProgramDecider) proposal.Exec {
	if !x.Text || x.First {
		return x
	}
	x.Lineage, x.Whole, x.Partial = lineage.First, x.Argv, x.ArgvCut
	gate.Path = nil
	if len(x.Argv) > 0 && !strings.Contains(x.Argv[0], "/") && x.Layer == proposal.LayerRootfs {
		gate.Path = []string{path.Dir(x.Named)}
	}
	return x
}

// askedExec is x as the gate asks about it under the grant g.
func (j job) askedExec(x Exec, g proposal.Grant, gate *lineage.ProgramDecider) proposal.Exec {
	asked := gatedExec(x.Exec, gate)
	asked.Command, asked.Grants = j.act.Proposal.ID, slices.Concat([]string{}, g.Exec)
	return asked
}

func (j job) askedEgress(f Flow, g proposal.Grant) proposal.Egress {
	asked := f.Egress
	asked.Command, asked.Phase, asked.Grants = j.act.Proposal.ID, g.Phase, slices.Concat([]string{}, g.Network)
	return asked
}

func (o *Outcome) redecideExec(ctx context.Context, j job, x Exec, g proposal.Grant, gate *lineage.ProgramDecider) {
	asked := j.askedExec(x, g, gate)
	// values and words that are not recorded may affect the decision
	if asked.Text && (len(asked.Variables) > 0 || asked.ArgvCut) {
		o.Omitted++
		return
	}
	d, err := gate.DecideExec(ctx, asked)
	o.Decisions++
	if asked.ArgvCut && err == nil && !d.Cacheable { // the missing words may affect the decision
		o.Omitted++
		return
	}
	o.Execs++
	o.compareAnswers(j, KindExec, x.Exec.Path, x.Times,
		NewAnswer(x.Decision.Effect, x.Decision.Rules, ReasonList(x.Decision.Reason), nil),
		NewAnswer(d.Effect, d.Rules, ReasonList(d.Reason), err))
}

func (o *Outcome) redecideEgress(ctx context.Context, j job, f Flow, g proposal.Grant, judge Judge) {
	o.Egress++
	o.Decisions++
	d, err := judge.Egress(ctx, j.askedEgress(f, g))
	o.compareAnswers(j, KindEgress, f.Egress.Destination(), f.Times,
		NewAnswer(f.Decision.Effect, f.Decision.Rules, ReasonList(f.Decision.Reason), nil),
		NewAnswer(d.Effect, d.Rules, ReasonList(d.Reason), err))
}

// ReasonList is the one reason r, or none.
func ReasonList(r *proposal.Reason) []proposal.Reason {
	if r == nil {
		return nil
	}
	return []proposal.Reason{*r}
}

func answerOf(d proposal.Decision, err error) Answer {
	return NewAnswer(d.Effect, d.Rules, d.Reasons, err)
}

// NewAnswer is the Answer of a decision, or of the error that there is in its place.
func NewAnswer(effect proposal.Effect, rules []string, reasons []proposal.Reason, err error) Answer {
	if err != nil {
		f := proposal.FailureOf(err)
		return Answer{Effect: "stop", Rule: f.Code, Message: f.Message}
	}
	a := Answer{Effect: effect.String()}
	for _, r := range reasons {
		if r.Effect == effect && !r.Observed && effect != proposal.Allow {
			a.Rule, a.Message = r.Rule, r.Message
			return a
		}
	}
	if len(rules) > 0 {
		a.Rule = rules[0]
	}
	return a
}
