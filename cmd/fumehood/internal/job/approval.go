// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A current is the state of a pull request and this repository when an approval is given.
type current struct {
	approver bot.Approver
	head     string // the pull request's commit
	policy   string // the digest of this repository's policy
	cwd      string // where commands start, "" for the repository's top
}

// findWaiting returns, for each plan that waits, the number of its run in runs, or -1: the run with
// its plan, or the only one of its artifact, so that a replaced plan is noticed. No two plans have
// the same run: the same plan can wait twice.
func findWaiting(waits []comment.Pending, runs []PlanRun) []int {
	var found []int
	free := func(p comment.Pending, is func(PlanRun) bool) int {
		for i, l := range runs {
			if p.Artifact == l.artifact.name && p.RunID == l.artifact.run && !slices.Contains(found, i) && is(l) {
				return i
			}
		}
		return -1
	}
	for _, p := range waits {
		i := free(p, func(l PlanRun) bool { return l.Report.Run.PlanDigest == p.PlanDigest })
		if i < 0 {
			i = free(p, func(l PlanRun) bool { return l.artifact.dir == "" })
		}
		found = append(found, i)
	}
	return found
}

// A question is what a person is asked to approve together: plans that were shown at one time.
type question struct {
	head  string // the commit
	waits []comment.Pending
}

// questionsOf are what the comment s asks.
func questionsOf(s comment.State) (list []question) {
	for _, p := range s.PendingPlans() {
		i := slices.IndexFunc(list, func(q question) bool { return q.waits[0].Nonce == p.Nonce })
		if i < 0 {
			i, list = len(list), append(list, question{head: s.Head()})
		}
		list[i].waits = append(list[i].waits, p)
	}
	return list
}

func (q question) asked() bot.ApprovalQuestion {
	asked := bot.ApprovalQuestion{HeadSHA: q.head}
	for _, p := range q.waits {
		asked.Nonce = p.Nonce
		asked.Plans = append(asked.Plans, bot.AskedPlan{Name: p.Name, PlanDigest: p.PlanDigest, Policy: p.Policy})
	}
	return asked
}

// approve plans all that waits of the question that c names, each with the approval that c gives to
// it. It refuses if the commit, policy, working directory, artifact or plan of any has changed
// since the comment was written.
func approve(c bot.Command, questions []question, runs []PlanRun, now current) ([]Planned, *bot.Problem) {
	var all []bot.ApprovalQuestion
	for _, q := range questions {
		all = append(all, q.asked())
	}
	chosen, problem := bot.ChooseQuestion(all, c)
	if problem != nil {
		return nil, problem
	}
	shown, waiting := all[chosen], questions[chosen].waits
	present := bot.ApprovalQuestion{Nonce: shown.Nonce, HeadSHA: now.head}
	var plans []Planned
	var replaced *bot.Problem
	for n, i := range findWaiting(waiting, runs) {
		waits := waiting[n]
		asked := bot.AskedPlan{Name: waits.Name, Policy: now.policy}
		if i >= 0 {
			// The digest of a plan that cannot be read is "", which no approval covers.
			p, _ := plan.Decode(runs[i].document, planName)
			asked.PlanDigest = p.Digest
			plans = append(plans, Planned{Name: waits.Name, Document: string(runs[i].document), File: planName})
			replaced = cmp.Or(replaced, checkReplaced(waits, runs[i], now))
		}
		present.Plans = append(present.Plans, asked)
	}
	approvals, problem := bot.ApprovePlans(shown, present, c, now.approver)
	switch {
	case problem != nil:
		return nil, problem
	case replaced != nil:
		return nil, replaced
	}
	for i := range plans {
		plans[i].Approval = &approvals[i]
	}
	return plans, nil
}

// checkReplaced refuses a plan whose artifact or working directory has changed since it was shown.
func checkReplaced(waits comment.Pending, l PlanRun, now current) *bot.Problem {
	switch {
	case waits.ArtifactID != 0 && waits.ArtifactID != l.artifact.id:
		return bot.VoidApprovalProblem("the artifact has been replaced since it was shown")
	case l.Report.Run.Cwd != now.cwd:
		return bot.VoidApprovalProblem("the working directory has changed since it was shown")
	}
	return nil
}

// approves reports whether a is one of r's approvals. A run that a pull request started
// has none.
func (r Request) approves(a proposal.Approval) bool {
	return slices.ContainsFunc(r.Plans, func(p Planned) bool { return p.Approval != nil && p.Approval.Equal(a) })
}

// checkHead refuses a request whose commit is no longer the pull request's.
func (r Request) checkHead(pr github.PullRequest) error {
	if pr.Head.SHA == r.Head {
		return nil
	}
	return &proposal.StopError{Code: "head.moved",
		Message: fmt.Sprintf("the pull request has a newer commit (%.12s, requested was %.12s)", pr.Head.SHA, r.Head),
		Hint:    "review the new commit and request the run again"}
}
