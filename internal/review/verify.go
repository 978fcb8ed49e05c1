// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Trees run plans on the code of a pull request, and on the code before it. Each proposal that
// is Fresh gets a sandbox of its own, in which set-up has been done. An error means that it is
// not certain what ran.
type Trees interface {
	// Batch returns how many commands a plan may have: at least 1, and not more where set-up
	// must have been done in the sandbox of each.
	Batch() int
	// Run runs plan on a side: SideHead or SideBase.
	Run(ctx context.Context, side string, plan proposal.Plan) (proposal.Report, error)
	// Suggested runs plan on head with the suggestion of a finding applied. A suggestion that
	// cannot be applied is an *Unsuitable.
	Suggested(ctx context.Context, f proposal.ReviewFinding, plan proposal.Plan) (proposal.Report, error)
}

// An Unsuitable is why a suggestion cannot be applied. It is a fact, not a failure.
type Unsuitable struct{ Why string }

func (u *Unsuitable) Error() string { return u.Why }

// repeats is how often a reproducer of a verified finding has run on each side.
const repeats = 3

// Verify runs the reproducers of findings and returns what that shows. With an error it
// returns what was shown until then, and Document.Reviewed is false.
func Verify(ctx context.Context, trees Trees, diff *Diff, findings proposal.ReviewFindings) (Document, error) {
	v := &verifier{trees: trees, findings: findings, doc: newDocument(diff, findings), tests: map[string]bool{}}
	err := v.verifyAll(ctx)
	v.doc.setVerdicts(err)
	return v.doc, err
}

type verifier struct {
	trees    Trees
	findings proposal.ReviewFindings
	doc      Document
	tests    map[string]bool // ids of tests that succeeded on head
}

func (v *verifier) verifyAll(ctx context.Context) error {
	runnable := v.selectResults(func(r Result) bool { return r.Finding.Reproducer != nil })
	if err := v.runTests(ctx); err != nil {
		return err
	}
	if err := v.runReproducers(ctx, SideHead, runnable, 1); err != nil {
		return err
	}
	failed := v.selectResults(func(r Result) bool { return r.lastOutcome(SideHead) == Failed })
	if err := v.runReproducers(ctx, SideBase, failed, 1); err != nil {
		return err
	}
	shown := v.selectResults(func(r Result) bool {
		return r.lastOutcome(SideHead) == Failed && r.lastOutcome(SideBase) == Passed
	})
	for _, side := range []string{SideHead, SideBase} {
		if err := v.runReproducers(ctx, side, shown, repeats-1); err != nil {
			return err
		}
	}
	return v.trySuggestions(ctx)
}

// selectResults returns the indexes of the results that want accepts.
func (v *verifier) selectResults(want func(Result) bool) (list []int) {
	for i, r := range v.doc.Results {
		if want(r) {
			list = append(list, i)
		}
	}
	return list
}

// runReproducers runs reproducers on a side, each times times.
func (v *verifier) runReproducers(ctx context.Context, side string, which []int, times int) error {
	var plan proposal.Plan
	var owner []int
	for range times {
		for _, i := range which {
			plan.Proposals = append(plan.Proposals, v.reproducerProposal(i, len(plan.Proposals)+1))
			owner = append(owner, i)
		}
	}
	if len(owner) == 0 {
		return nil
	}
	records, err := v.runPlan(side, plan,
		func(p proposal.Plan) (proposal.Report, error) { return v.trees.Run(ctx, side, p) })
	for k, e := range records {
		r := &v.doc.Results[owner[k]]
		r.Evidence = append(r.Evidence, e)
	}
	return err
}

// reproducerProposal returns the reproducer of finding i as proposal n of a plan.
func (v *verifier) reproducerProposal(i, n int) proposal.Proposal {
	f := v.doc.Results[i].Finding
	p := *f.Reproducer
	p.ID, p.Why, p.Fresh = fmt.Sprintf("reproducer-%d", n), "reproducer of the finding "+f.ID, true
	return p
}

// A runner runs a plan on one tree.
type runner func(proposal.Plan) (proposal.Report, error)

// runPlan runs a plan, in parts if need be, and returns what its proposals showed, in their
// order: all of them, unless there is an error.
func (v *verifier) runPlan(side string, plan proposal.Plan, run runner) (list []Evidence, err error) {
	for part := range slices.Chunk(plan.Proposals, v.trees.Batch()) {
		shown, err := v.runPart(side, part, run)
		list = append(list, shown...)
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

func (v *verifier) runPart(side string, part []proposal.Proposal, run runner) (list []Evidence, err error) {
	report, err := run(proposal.Plan{Schema: proposal.PlanSchema, Proposer: v.findings.Reviewer,
		Digest: v.findings.Digest, Proposals: part})
	if report.Audit != nil {
		v.doc.Runs = append(v.doc.Runs, runOf(side, report))
	}
	if err != nil {
		return nil, err
	}
	for _, p := range part {
		at := slices.IndexFunc(report.Records,
			func(r proposal.Record) bool { return r.Proposal.ID == p.ID && r.Proposal.Origin == "" })
		if at < 0 {
			return list, &proposal.StopError{Code: "review.incomplete",
				Message: fmt.Sprintf("the report of run %q lacks the command %q", report.Run.ID, p.ID)}
		}
		list = append(list, evidenceOf(side, report, report.Records[at]))
	}
	return list, nil
}

// runTests finds out which tests succeed on head, if a suggestion can need them.
func (v *verifier) runTests(ctx context.Context) error {
	suggested := slices.ContainsFunc(v.findings.Findings,
		func(f proposal.ReviewFinding) bool { return f.Suggestion != nil && f.Reproducer != nil })
	if len(v.findings.Tests) == 0 || !suggested {
		return nil
	}
	records, err := v.runPlan(SideHead, proposal.Plan{Proposals: requireFresh(v.findings.Tests)},
		func(p proposal.Plan) (proposal.Report, error) {
			return v.trees.Run(ctx, SideHead, p)
		})
	for i, e := range records {
		v.tests[v.findings.Tests[i].ID] = e.Outcome == Passed
	}
	return err
}

func requireFresh(list []proposal.Proposal) []proposal.Proposal {
	list = slices.Clone(list)
	for i := range list {
		list[i].Fresh = true
	}
	return list
}

// trySuggestions tries the suggestions of verified findings.
func (v *verifier) trySuggestions(ctx context.Context) error {
	for i := range v.doc.Results {
		r := &v.doc.Results[i]
		if r.Finding.Suggestion == nil {
			continue
		}
		r.Suggestion = &Suggestion{}
		if verdict, _ := r.judgeEvidence(); verdict != Verified {
			r.Suggestion.Why = "the finding is not verified"
		} else if !r.Position.isSuggestible() {
			r.Suggestion.Why = "the lines are not in the diff of the pull request's code"
		} else if err := v.trySuggestion(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// trySuggestion runs the reproducer of finding i, and the tests that succeeded on head, with its suggestion.
func (v *verifier) trySuggestion(ctx context.Context, i int) error {
	r := &v.doc.Results[i]
	plan := proposal.Plan{Proposals: []proposal.Proposal{v.reproducerProposal(i, 1)}}
	for _, t := range requireFresh(v.findings.Tests) {
		if v.tests[t.ID] {
			plan.Proposals = append(plan.Proposals, t)
		}
	}
	records, err := v.runPlan(SideSuggested, plan,
		func(p proposal.Plan) (proposal.Report, error) { return v.trees.Suggested(ctx, r.Finding, p) })
	var unsuitable *Unsuitable
	if errors.As(err, &unsuitable) {
		r.Suggestion.Why = unsuitable.Why
		return nil
	}
	r.Suggestion.Evidence = records
	if err == nil {
		r.Suggestion.offerIfSuccessful()
	}
	return err
}
