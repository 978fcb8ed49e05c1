// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
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

// waiting finds which of the questions in s the run l is about: the one with its plan,
// else the only one that its artifact held, so that a replaced plan is
// noticed.
func waiting(s comment.State, l PlanRun) (comment.Pending, bool) {
	var there []comment.Pending
	for _, p := range s.Pending {
		if p.Artifact == l.artifact.name && p.RunID == l.artifact.run {
			there = append(there, p)
		}
	}
	i := slices.IndexFunc(there, func(p comment.Pending) bool { return p.PlanDigest == l.Report.Run.PlanDigest })
	switch {
	case i >= 0:
		return there[i], true
	case len(there) == 1 && l.artifact.dir == "":
		return there[0], true
	}
	return comment.Pending{}, false
}

// approve binds an approval to what the comment s showed as waiting. It refuses when the
// artifact, its plan, the working directory, the commit or the policy has changed.
func approve(c bot.Command, s comment.Current, waits comment.Pending, l PlanRun, now current) (proposal.Approval, *bot.Problem) {
	asked := bot.Asked{HeadSHA: s.State.Result.Head, PlanDigest: waits.PlanDigest, Policy: waits.Policy, Since: s.Since}
	approval, problem := bot.Approve(asked, c, now.approver, now.head)
	switch {
	case problem != nil:
		return approval, problem
	case waits.ArtifactID != 0 && waits.ArtifactID != l.artifact.id:
		return approval, &bot.Problem{Message: "the artifact has been replaced since it was shown"}
	case l.Report.Run.Cwd != now.cwd:
		return approval, &bot.Problem{Message: "the working directory has changed since it was shown", Text: l.Report.Run.Cwd}
	}
	p, problems := plan.Decode(l.document, planName)
	if len(problems) > 0 {
		return approval, &bot.Problem{Message: "the plan that was shown can no longer be read"}
	}
	return approval, bot.Void(approval, proposal.Run{HeadSHA: now.head, PlanDigest: p.Digest, Policy: now.policy})
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
	return &proposal.StopError{Code: "head.moved", Message: fmt.Sprintf("the pull request has a newer commit (%.12s, requested was %.12s)", pr.Head.SHA, r.Head),
		Hint: "review the new commit and request the run again"}
}
