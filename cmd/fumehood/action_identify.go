// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// identify says which commit of which pull request this job is about. It believes
// the event and the API, and the request of a job that believed them.
func (j *job) identify() error {
	switch {
	case j.event.Run != nil:
		return j.identifyRun()
	case j.event.Name == "issue_comment" && j.phase != action.Trigger && j.in.Request != "":
		return j.identifyRequest()
	case j.event.Name == "issue_comment" && (j.phase == action.Report || j.phase == action.Run):
		return requestError(fmt.Errorf("there is none")) // nobody has judged the comment
	case j.event.Name == "pull_request":
		j.request = request{Command: "plan", PR: j.event.Number, Head: j.event.PR.Head.SHA, Base: j.pr.Base.SHA}
	case j.event.Number > 0:
		j.request = request{Command: "plan", PR: j.event.Number, Head: j.pr.Head.SHA, Base: j.pr.Base.SHA}
	default:
		j.request = request{Command: "plan", Head: j.runner.SHA, Base: j.runner.SHA}
	}
	return nil
}

func (j *job) identifyRequest() error {
	r, err := readRequest(j.in.Request)
	if err != nil {
		return err
	}
	if r.PR != j.event.Number || r.Comment != j.event.Comment.ID {
		return requestError(fmt.Errorf("it is about another pull request or comment than this event"))
	}
	j.request = r
	return nil
}

// identifyRun finds the pull request of the run that completed. The payload names none
// for forks, so it is looked for by where its code comes from; and the run is read
// again, since only the API knows it.
func (j *job) identifyRun() error {
	e := j.event.Run
	run, err := j.hub.WorkflowRun(j.Ctx, e.ID)
	if err != nil {
		return err
	}
	if run.HeadSHA != e.HeadSHA || run.HeadRepositoryID != e.HeadRepositoryID || run.Event != "pull_request" {
		return &proposal.StopError{Code: "event.mismatch", Message: "the event says otherwise about the run than the API does",
			Hint: "start the workflow again; if it happens again, report it"}
	}
	owner, _, _ := strings.Cut(e.HeadRepository, "/")
	if owner == "" || e.HeadBranch == "" {
		j.skipped = "the repository that the run's code came from is gone"
		return nil
	}
	all, err := j.hub.PullRequestsByHead(j.Ctx, owner, e.HeadBranch)
	if err != nil {
		return err
	}
	pr, found := choosePR(all, *e)
	if !found {
		j.skipped = "no pull request has the run's branch as its head"
		return nil
	}
	j.pr = pr
	j.request = request{Command: "plan", PR: pr.Number, Head: e.HeadSHA, Base: pr.Base.SHA}
	j.event.PR = describePR(pr)
	return nil
}

// choosePR takes the one whose head is the run's commit, else the newest open one of
// the branch, which has then moved on.
func choosePR(all []github.PullRequest, run action.WorkflowRun) (github.PullRequest, bool) {
	var chosen github.PullRequest
	better := func(pr github.PullRequest) bool {
		exact, open := pr.Head.SHA == run.HeadSHA, pr.State == "open"
		hadExact, hadOpen := chosen.Head.SHA == run.HeadSHA, chosen.State == "open"
		if exact != hadExact {
			return exact
		}
		if open != hadOpen {
			return open
		}
		return pr.Number > chosen.Number
	}
	for _, pr := range all {
		if pr.Head.RepositoryID == run.HeadRepositoryID && pr.Head.RepositoryID != 0 && better(pr) {
			chosen = pr
		}
	}
	return chosen, chosen.Number > 0
}

// stamp says which run the results speak of: the one that ran, not the one that tells.
func (j *job) stamp() comment.Stamp {
	s := comment.Stamp{Head: j.request.Head, RunID: j.runner.RunID, Attempt: j.runner.Attempt}
	if j.event.Run != nil {
		s.RunID, s.Attempt = j.event.Run.ID, j.event.Run.Attempt
	}
	return s
}
