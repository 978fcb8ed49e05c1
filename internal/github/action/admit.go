// SPDX-License-Identifier: Apache-2.0

package action

import (
	"slices"
	"strings"
)

// A Phase is the work of this job. The zero Phase does nothing.
type Phase int

// The phases.
const (
	Nothing         Phase = iota
	Run                   // decide and run a plan; write the report to an artifact and the step summary
	Report                // run nothing; read a report and post it
	RunAndReport          // both, in one job
	Review                // verify findings on the pull request's code; write them to an artifact and the step summary
	ReviewAndReport       // both, in one job
	Trigger               // check who requested the run, answer with a reaction, start the run and report jobs
	Find                  // run nothing; ask a model for findings, with its key
	Split                 // run nothing; split the input plan into parts for the jobs that follow
)

// RunsCode reports whether p runs code of the pull request in this job.
func (p Phase) RunsCode() bool {
	return p == Run || p == RunAndReport || p == Review || p == ReviewAndReport
}

// An Admission is the work that this job may do.
type Admission struct {
	Phase Phase
	// Reason says why the phase is Nothing or less than expected. It is for people.
	Reason string
}

// Facts are what Admit must know in addition to the runner's variables.
type Facts struct {
	OIDC          bool   // ACTIONS_ID_TOKEN_REQUEST_URL is set: the job can request an OIDC token
	ClassicScopes string // of a classic personal token, as returned by the API; "" for any other token
	Root          bool   // the process runs as root
	Sudo          bool   // sudo -n works
}

// dependabot is Dependabot's user id on github.com. Elsewhere it is identified by
// its login, which is safe here, since an account with that login only loses rights.
// Jobs that it starts are treated like a fork's: a read-only token and no secrets.
const (
	dependabot      = 49699333
	dependabotLogin = "dependabot[bot]"
)

// Admit decides what this job does, based on the event, the requested phase and the
// origin of the code. If something cannot be done, the error is a StopError whose
// hint is the YAML that fixes it. An event that requests nothing results in an
// Admission of Nothing.
//
// For issue_comment and workflow_dispatch, the caller must first set e.PR from the
// API. If it is not set, the code is treated as a fork's.
//
// Facts.ClassicScopes is known only after a first request. A caller that makes no
// request before Admit must call Admit again when it is known, before anything runs.
func Admit(r Runner, e Event, in Inputs, facts Facts) (Admission, error) {
	if e.Unsupported != "" {
		return e.refuseUnsupported(in)
	}
	if !strings.EqualFold(r.Repository, e.Repository.Name) {
		return Admission{}, refuseRepository(r, e)
	}
	if r.EventName != e.Name {
		return Admission{}, refuseEventName(r, e)
	}
	if e.Group != nil && r.SHA != e.Group.Head.SHA {
		return Admission{}, refuseGroup(r, e)
	}
	if a, idle := e.isIdle(); idle {
		return a, nil
	}
	a, err := e.admit(in)
	if err != nil || !a.Phase.RunsCode() {
		return a, err
	}
	if err := e.admitCode(r, in, facts); err != nil {
		return Admission{}, err
	}
	if in.Upload == UploadAuto && r.isEnterpriseServer() && a.Reason == "" {
		a.Reason = "artifacts are not uploaded on GitHub Enterprise Server: approve, rerun and explain, which read them, do not work (see .github/examples/README.md in fumehood's repository)"
	}
	return a, nil
}

// refuseUnsupported answers an event of which nothing was read: a workflow may have it for other
// jobs.
func (e Event) refuseUnsupported(in Inputs) (Admission, error) {
	if in.UnsupportedEvent == UnsupportedError {
		return Admission{}, refuseWithYAML("event.unsupported", e.Unsupported,
			"use one of these events; if the workflow has other events for other jobs, give this job\nif: github.event_name == 'pull_request'", yamlPullRequest)
	}
	return Admission{Reason: e.Unsupported}, nil
}

// isIdle reports whether the event requests nothing, and why.
func (e Event) isIdle() (Admission, bool) {
	var why string
	switch {
	case e.OnIssue:
		why = "the comment is on an issue, not on a pull request"
	case e.Name == eventIssueComment && e.Action != "created":
		why = "the comment was " + e.Action +
			": only new comments are read, because an old one may be edited long after it was reviewed"
	case e.Name == eventReviewComment && e.Action != "created", e.Name == eventReview && e.Action != "submitted":
		why = "the review was " + e.Action + ": only new reviews and comments are read"
	case e.isReview() && e.readOnly():
		why = "this job's token is read-only, because the review is on a pull request from a fork or from Dependabot: write the command in a comment on the pull request"
	case e.Name == eventCheckRun && e.Comment == nil:
		why = "the check run requests no run: its action is " + e.Action
	case e.Name == eventMergeGroup && e.Action != "checks_requested":
		why = "the merge queue requests no checks: the action is " + e.Action
	case e.Name == eventPush && e.Ref != "refs/heads/"+e.Repository.DefaultBranch:
		why = "the push is not to the default branch"
	case e.Name == eventPullRequest && (e.Action == "closed" || e.PR.State == "closed"):
		why = "the pull request is closed"
	case e.Name == eventWorkflowRun && e.Action != "completed":
		why = "the run is " + e.Action + ", not completed"
	case e.Name == eventWorkflowRun && e.Run.Event != eventPullRequest:
		why = "the run that completed was started by " + e.Run.Event + ", not by pull_request"
	case e.Name == eventWorkflowRun && (e.Run.Conclusion == "skipped" || e.Run.Conclusion == "action_required"):
		why = "the run that completed ran nothing: its conclusion is " + e.Run.Conclusion
	}
	return Admission{Reason: why}, why != ""
}

// isForeign reports whether the code is, or may be, a fork's.
func (e Event) isForeign() bool {
	if e.PR == nil {
		return e.Name != eventPush && e.Name != eventWorkflowDispatch || e.Number != 0
	}
	return e.PR.Fork
}

// readOnly reports whether GitHub gives this job a read-only token.
func (e Event) readOnly() bool {
	return (e.Name == eventPullRequest || e.isReview()) &&
		(e.isForeign() || e.SenderID == dependabot || e.SenderLogin == dependabotLogin)
}

const readOnlyReason = "this job's token is read-only, because the pull request is from a fork or from Dependabot: " +
	"a second workflow, on workflow_run, posts the comment (see .github/examples/fumehood-report.yml in fumehood's repository)"

const noReviewReason = "there is no pull request to review"

const noKeyReason = "no model is asked, because a run of a pull request from a fork or from Dependabot gets no secrets: " +
	"a maintainer's comment starts a review (see .github/examples/review.yml in fumehood's repository)"

const pushReason = "a push has no pull request, so there is no comment"

// withoutPullRequest reports whether the event has none that could be reviewed.
func (e Event) withoutPullRequest() bool {
	return e.Name == eventPush || e.Name == eventMergeGroup ||
		e.Name == eventWorkflowDispatch && e.PR == nil && e.Number == 0
}

// admit decides by event, phase and the inputs about a model.
func (e Event) admit(in Inputs) (Admission, error) {
	switch {
	case in.Phase == PhaseTrigger:
		if e.Comment == nil {
			return Admission{}, refuseTrigger(e)
		}
		return Admission{Phase: Trigger}, nil
	case in.Phase == PhaseReport && e.Name == eventPush:
		return Admission{Reason: pushReason}, nil
	case in.Phase == PhaseReport:
		if e.readOnly() {
			return Admission{Reason: readOnlyReason}, nil
		}
		return Admission{Phase: Report}, nil
	case in.Phase == PhaseRun:
		if e.Name == eventWorkflowRun {
			return Admission{}, refuseWorkflowRun()
		}
		return Admission{Phase: Run}, nil
	case in.Phase == PhaseReview:
		return e.admitReview(in)
	case in.Phase == PhaseFind:
		return e.admitFind(in)
	case in.Phase == PhaseSplit:
		return e.admitSplit(in)
	case in.Phase != PhaseAuto:
		return Admission{}, refusePhase(in)
	}
	return e.admitAuto()
}

// admitReview decides whether a job that verifies findings also posts them. After a comment it
// does not: there, jobs of their own check the comment and report. A model is asked beside the code
// only in a job that also posts.
func (e Event) admitReview(in Inputs) (Admission, error) {
	switch {
	case in.Provider != "" && strings.TrimSpace(in.Findings) != "":
		return Admission{}, refuseTwoReviewers()
	case e.Name == eventWorkflowRun:
		return Admission{}, refuseWorkflowRun()
	case e.withoutPullRequest():
		return Admission{Reason: noReviewReason}, nil
	case in.Provider != "" && (e.Comment != nil || e.isForeign()):
		return Admission{}, refuseModelBesideCode()
	case in.Provider != "" && e.readOnly():
		return Admission{Reason: "no model is asked: GitHub gives a job on Dependabot's pull request neither the key nor a token that can write"}, nil
	case e.readOnly():
		return Admission{Phase: Review, Reason: readOnlyReason}, nil
	case e.Comment != nil || e.isForeign():
		return Admission{Phase: Review}, nil
	}
	return Admission{Phase: ReviewAndReport}, nil
}

// admitFind decides whether a model is asked. A stranger's pull request does not start it by
// itself: it would spend the key.
func (e Event) admitFind(in Inputs) (Admission, error) {
	switch {
	case e.Name == eventWorkflowRun:
		return Admission{}, refuseFind()
	case e.withoutPullRequest():
		return Admission{Reason: noReviewReason}, nil
	case e.readOnly():
		return Admission{Reason: noKeyReason}, nil
	case in.Provider == "" || in.Model == "":
		return Admission{}, refuseNoModel()
	case in.MaxRounds > 1:
		return Admission{}, refuseRounds(in.MaxRounds)
	}
	return Admission{Phase: Find}, nil
}

// admitSplit decides whether the input plan is split. A comment brings its own plan.
func (e Event) admitSplit(in Inputs) (Admission, error) {
	switch {
	case e.Comment != nil || e.Name == eventWorkflowRun:
		return Admission{}, refuseSplit(e)
	case strings.TrimSpace(in.Plan) == "":
		return Admission{}, refuseNoPlan()
	}
	return Admission{Phase: Split}, nil
}

func (e Event) admitAuto() (Admission, error) {
	switch {
	case e.Name == eventWorkflowRun:
		return Admission{Phase: Report}, nil
	case e.readOnly():
		return Admission{Phase: Run, Reason: readOnlyReason}, nil
	case e.Name == eventPush:
		return Admission{Phase: Run, Reason: pushReason}, nil
	case e.Name == eventWorkflowDispatch && e.PR == nil && e.Number == 0:
		return Admission{Phase: Run, Reason: "no pull request is given, so there is no comment"}, nil
	case e.Name == eventMergeGroup: // reviewed code, which is about to be the base branch's
		return Admission{Phase: RunAndReport,
			Reason: "a merge queue's commit has no pull request, so there is no comment"}, nil
	case e.Name != eventPullRequest && e.isForeign():
		return Admission{}, refuseOneJob(e)
	}
	return Admission{Phase: RunAndReport}, nil
}

// admitCode decides whether code may run in this job.
func (e Event) admitCode(r Runner, in Inputs, facts Facts) error {
	switch {
	case r.OS != "Linux":
		return refuseOS(r)
	case r.Arch != "X64" && r.Arch != "ARM64":
		return refuseArch(r)
	case r.inContainer():
		return refuseContainer()
	case !facts.Root && !facts.Sudo:
		return refuseUser()
	case (in.Phase == PhaseRun || in.Phase == PhaseReview && e.Comment != nil) && in.Upload == UploadAuto &&
		r.isEnterpriseServer():
		return refuseUpload()
	case e.isForeign() && facts.OIDC:
		return refuseOIDC()
	case e.isForeign() && (facts.ClassicScopes != "" || isPersonalToken(in.Token)):
		return refusePersonalToken()
	case in.ReviewerResult != "" && in.ReviewerResult != ReviewerSucceeded: // there is nothing, and the report says why
	case in.Phase == PhaseReview && strings.TrimSpace(in.Findings) == "" && in.Provider == "":
		return refuseNoFindings()
	case in.Phase != PhaseReview && e.Comment == nil && strings.TrimSpace(in.Plan) == "":
		return refuseNoPlan()
	}
	return nil
}

// isPersonalToken reports whether a token acts for a person: a classic or fine-grained personal
// token, or one that a person gave to an OAuth or GitHub App. Such a token has rights that
// the job's permissions do not limit. GitHub has used these prefixes since 2021; an older
// token is recognized only by its scopes.
func isPersonalToken(token string) bool {
	return slices.ContainsFunc([]string{"ghp_", "github_pat_", "gho_", "ghu_"},
		func(prefix string) bool { return strings.HasPrefix(token, prefix) })
}
