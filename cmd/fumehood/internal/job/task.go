// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Task is what a step has to do: what is requested, and about whose code.
type Task struct {
	PR      github.PullRequest // from the API; zero without a pull request
	Fork    string             // the repository that the code comes from; "" for the base's own
	Request Request

	fresh bool // PR has just been read, and need not be read again before a run
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
		t.fresh = true
		if event.PR == nil {
			event.PR = describePR(t.PR)
		}
	}
	if j.check.ID != 0 && t.PR.Head.SHA != j.check.HeadSHA {
		return t, action.Nothing, fmt.Sprintf("the check run is of commit %.12s, and the pull request is at %.12s",
			j.check.HeadSHA, t.PR.Head.SHA), nil
	}
	t.Fork = forkName(event.PR)
	a, err := action.Admit(j.runner, event, j.in, action.Facts{
		OIDC: j.options.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL") != "", ClassicScopes: j.gh.Scopes(), Root: isRoot(),
		Sudo: canSudo(),
	})
	if err != nil || a.Phase == action.Nothing {
		return t, action.Nothing, a.Reason, err
	}
	if a.Reason != "" {
		j.console.PrintNotice(a.Reason)
	}
	return t, a.Phase, "", nil
}

func describePR(pr github.PullRequest) *action.PullRequest {
	ref := func(r github.Ref) action.Ref {
		return action.Ref{SHA: r.SHA, Ref: r.Ref, Repository: r.Repository, RepositoryID: r.RepositoryID}
	}
	return &action.PullRequest{
		Number: pr.Number, State: pr.State, Draft: pr.Draft, Locked: pr.Locked, AuthorID: pr.Author.ID,
		AuthorLogin: pr.Author.Login,
		Head:        ref(pr.Head), Base: ref(pr.Base), Fork: isFork(pr),
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
	case j.isComment() && (phase == action.Report || phase == action.Run || phase == action.Review ||
		phase == action.Find):
		return t, "", requestError(fmt.Errorf("it is empty")) // no job has judged the comment
	}
	t.Request = j.plannedRequest(t.PR)
	return t, "", nil
}

// baseBranch is the branch that the code is to be merged to, "" for none.
func (t Task) baseBranch() string { return cmp.Or(t.PR.Base.Ref, t.Request.BaseRef) }

// plannedRequest is a request for the workflow's own plan.
func (j *Job) plannedRequest(pr github.PullRequest) Request {
	switch {
	case j.event.Name == "pull_request":
		return Request{Command: "plan", PR: j.event.Number, Head: j.event.PR.Head.SHA, Base: pr.Base.SHA,
			HeadRef: pr.Head.Ref, BaseRef: pr.Base.Ref}
	case j.event.Group != nil:
		g := j.event.Group
		return Request{Command: "plan", Head: g.Head.SHA, Base: g.Base.SHA, HeadRef: g.Head.Ref, BaseRef: g.Base.Ref}
	case j.event.Number > 0:
		return Request{Command: "plan", PR: j.event.Number, Head: pr.Head.SHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref,
			BaseRef: pr.Base.Ref}
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
		return t, "", &proposal.StopError{Code: "event.mismatch",
			Message: "the event does not match the API's data about the run",
			Hint:    "start the workflow again; if this error persists, report it as a bug"}
	}
	j.ran = run
	owner, _, _ := strings.Cut(e.HeadRepository, "/")
	if owner == "" || e.HeadBranch == "" {
		return t, "the source repository of the run was deleted", nil
	}
	all, err := j.gh.PullRequestsByHead(ctx, owner, e.HeadBranch)
	if err != nil {
		return t, "", err
	}
	pr, why, err := s.choosePR(ctx, candidates(all, *e))
	if err != nil || why != "" {
		return t, why, err
	}
	return Task{PR: pr, Fork: forkName(describePR(pr)),
		Request: Request{Command: "plan", PR: pr.Number, Head: e.HeadSHA, Base: pr.Base.SHA, HeadRef: pr.Head.Ref,
			BaseRef: pr.Base.Ref}}, "", nil
}

// candidates are the pull requests that a run may be about: those of its branch whose head is
// its commit, or else, if they have all moved on since, those of its branch.
func candidates(all []github.PullRequest, run action.WorkflowRun) []github.PullRequest {
	ofBranch := choose(all, func(pr github.PullRequest) bool {
		return pr.Head.RepositoryID == run.HeadRepositoryID && pr.Head.RepositoryID != 0
	})
	exact := choose(ofBranch, func(pr github.PullRequest) bool { return pr.Head.SHA == run.HeadSHA })
	if len(exact) > 0 {
		return exact
	}
	return ofBranch
}

// choose returns the pull requests for which keep is true.
func choose(all []github.PullRequest, keep func(github.PullRequest) bool) (kept []github.PullRequest) {
	for _, pr := range all {
		if keep(pr) {
			kept = append(kept, pr)
		}
	}
	return kept
}

// choosePR takes the only candidate, or the one that the run's report names. The report is
// untrusted, but can only choose among pull requests of its own branch. Without a report it
// takes the only open candidate. A why that is not "" says why there is none.
func (s step) choosePR(ctx context.Context, of []github.PullRequest) (pr github.PullRequest, why string, err error) {
	switch len(of) {
	case 0:
		return pr, "no pull request has the run's branch as its head", nil
	case 1:
		return of[0], "", nil
	}
	named, err := s.job.namedPR(ctx)
	if err != nil {
		return pr, "", err
	}
	for _, keep := range []func(github.PullRequest) bool{
		func(pr github.PullRequest) bool { return pr.Number == named },
		func(pr github.PullRequest) bool { return pr.State == "open" },
	} {
		if kept := choose(of, keep); len(kept) == 1 {
			return kept[0], "", nil
		}
	}
	why = fmt.Sprintf("%d pull requests have the run's branch as their head, and the run has no report that names one of them", len(of))
	s.job.console.PrintWarning(why)
	return pr, why, nil
}

// namedPR is the pull request that the first readable report of the run names, or 0.
func (j *Job) namedPR(ctx context.Context) (int, error) {
	artifacts, err := j.artifactsOf(ctx, j.stamp(""))
	if err != nil && !refused(err) {
		return 0, err
	}
	for _, a := range artifacts {
		bundles, err := j.unpack(ctx, a)
		if err != nil && !refused(err) {
			return 0, err
		}
		for _, files := range bundles {
			if r, err := report.Read(files[reportName], MaxReport); err == nil {
				return r.Run.PR, nil
			}
		}
	}
	return 0, nil
}

// stamp names the run that results are about: the one that ran, not the one that reports.
func (j *Job) stamp(head string) comment.Stamp {
	s := comment.Stamp{Head: head, RunID: j.runner.RunID, Attempt: j.runner.Attempt}
	started := j.started.Add(j.gh.ClockOffset()) // a runner's own clock can be wrong
	if j.event.Run != nil {
		s.Reported = max(0, started.Unix())
		s.RunID, s.Attempt, started = j.event.Run.ID, j.event.Run.Attempt, j.ran.Started
	}
	s.Started = max(0, started.Unix())
	return s
}

// runID is the stamp's.
func (j *Job) runID() int64 {
	if j.event.Run != nil {
		return j.event.Run.ID
	}
	return j.runner.RunID
}

// runURL is the address of the page of a run.
func (j *Job) runURL(id int64) string {
	return fmt.Sprintf("%s/%s/actions/runs/%d", j.runner.ServerURL, j.runner.Repository, id)
}
