// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"context"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Task is what a step has to do: what is requested, and about whose code.
type Task struct {
	PR      github.PullRequest // from the API; zero without a pull request
	Fork    string             // the repository that the code comes from; "" for the base's own
	Request Request
}

// admit reads the pull request and decides what this step may do. A skipped that is not
// "" is the reason to do nothing, for people.
func (s step) admit(ctx context.Context) (t Task, phase action.Phase, skipped string, err error) {
	j := s.job
	event := j.event
	if event.Number != 0 && !event.OnIssue {
		if t.PR, err = j.gh.PullRequest(ctx, event.Number); err != nil {
			return t, action.Nothing, "", err
		}
		if event.PR == nil {
			event.PR = describePR(t.PR)
		}
	}
	t.Fork = forkName(event.PR)
	a, err := action.Admit(j.runner, event, j.in, action.Facts{
		OIDC: j.options.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL") != "", ClassicScopes: j.gh.Scopes(), Root: isRoot(), Sudo: canSudo(),
	})
	if err != nil || a.Phase == action.Nothing {
		return t, action.Nothing, a.Reason, err
	}
	if a.Reason != "" {
		j.console.Notice(a.Reason)
	}
	return t, a.Phase, "", nil
}

func describePR(pr github.PullRequest) *action.PullRequest {
	ref := func(r github.Ref) action.Ref {
		return action.Ref{SHA: r.SHA, Ref: r.Ref, Repository: r.Repository, RepositoryID: r.RepositoryID}
	}
	return &action.PullRequest{
		Number: pr.Number, State: pr.State, Draft: pr.Draft, Locked: pr.Locked, AuthorID: pr.Author.ID, AuthorLogin: pr.Author.Login,
		Head: ref(pr.Head), Base: ref(pr.Base), Fork: isFork(pr),
	}
}

// isFork reports whether a pull request's code comes from another repository, or from
// one that is gone.
func isFork(pr github.PullRequest) bool {
	return pr.Head.RepositoryID == 0 || pr.Head.RepositoryID != pr.Base.RepositoryID
}

// forkName is Task.Fork for a pull request, which may be nil.
func forkName(pr *action.PullRequest) string {
	if pr == nil || !pr.Fork {
		return ""
	}
	if pr.Head.Repository == "" {
		return "a repository that is gone"
	}
	return pr.Head.Repository
}

// identify adds to t the commit and the pull request that this step is about. They come
// from the event and the API, or from the Request of a job that took them from there.
func (s step) identify(ctx context.Context, phase action.Phase, t Task) (_ Task, skipped string, err error) {
	j := s.job
	switch {
	case j.event.Run != nil:
		return s.identifyRun(ctx, t)
	case j.isComment() && phase != action.Trigger && j.in.Request != "":
		t.Request, err = s.readRequest()
		return t, "", err
	case j.isComment() && (phase == action.Report || phase == action.Run):
		return t, "", requestError(fmt.Errorf("it is empty")) // no job has judged the comment
	}
	t.Request = j.plannedRequest(t.PR)
	return t, "", nil
}

// plannedRequest is a request for the workflow's own plan.
func (j *Job) plannedRequest(pr github.PullRequest) Request {
	switch {
	case j.event.Name == "pull_request":
		return Request{Command: "plan", PR: j.event.Number, Head: j.event.PR.Head.SHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref, BaseRef: pr.Base.Ref}
	case j.event.Number > 0:
		return Request{Command: "plan", PR: j.event.Number, Head: pr.Head.SHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref, BaseRef: pr.Base.Ref}
	}
	return Request{Command: "plan", Head: j.runner.SHA, Base: j.runner.SHA}
}

// readRequest reads the input request, which must be about this event.
func (s step) readRequest() (Request, error) {
	j := s.job
	r, err := decodeRequest(j.in.Request)
	if err == nil && (r.PR != j.event.Number || r.Comment != j.event.Comment.ID) {
		err = requestError(fmt.Errorf("it is for a pull request or comment other than this event's"))
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// identifyRun finds the pull request of the run that completed. The payload of a fork's
// run names none, so it is found by where its code comes from. The run is read again,
// because only the API is trusted about it.
func (s step) identifyRun(ctx context.Context, t Task) (_ Task, skipped string, err error) {
	j := s.job
	e := j.event.Run
	run, err := j.gh.WorkflowRun(ctx, e.ID)
	if err != nil {
		return t, "", err
	}
	if run.HeadSHA != e.HeadSHA || run.HeadRepositoryID != e.HeadRepositoryID || run.Event != "pull_request" {
		return t, "", &proposal.StopError{Code: "event.mismatch", Message: "the event does not match the API's data about the run",
			Hint: "start the workflow again; if this error persists, report it as a bug"}
	}
	owner, _, _ := strings.Cut(e.HeadRepository, "/")
	if owner == "" || e.HeadBranch == "" {
		return t, "the source repository of the run was deleted", nil
	}
	all, err := j.gh.PullRequestsByHead(ctx, owner, e.HeadBranch)
	if err != nil {
		return t, "", err
	}
	pr, found := choosePR(all, *e)
	if !found {
		return t, "no pull request has the run's branch as its head", nil
	}
	return Task{PR: pr, Fork: forkName(describePR(pr)), Request: Request{Command: "plan", PR: pr.Number, Head: e.HeadSHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref, BaseRef: pr.Base.Ref}}, "", nil
}

// choosePR takes the pull request whose head is the run's commit, else the newest open
// one of the branch, which has moved on since.
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

// stamp names the run that results are about: the one that ran, not the one that reports.
func (j *Job) stamp(head string) comment.Stamp {
	s := comment.Stamp{Head: head, RunID: j.runner.RunID, Attempt: j.runner.Attempt}
	if j.event.Run != nil {
		s.RunID, s.Attempt = j.event.Run.ID, j.event.Run.Attempt
	}
	return s
}

// runID is the stamp's.
func (j *Job) runID() int64 { return j.stamp("").RunID }

// runURL is the address of the page of a run.
func (j *Job) runURL(id int64) string {
	return fmt.Sprintf("%s/%s/actions/runs/%d", j.runner.ServerURL, j.runner.Repository, id)
}
