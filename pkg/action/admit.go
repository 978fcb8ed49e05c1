// SPDX-License-Identifier: Apache-2.0

package action

import "strings"

// A Phase is what this job does. The zero Phase does nothing.
type Phase int

// The phases.
const (
	Nothing      Phase = iota
	Run                // decide and run a plan; leave the report as an artifact and in the step summary
	Report             // run nothing; read a report and post it
	RunAndReport       // both, in one job
	Trigger            // judge who asks, answer with a reaction, hand over to the jobs that run and report
)

// Runs reports whether p runs code of the pull request in this job.
func (p Phase) Runs() bool { return p == Run || p == RunAndReport }

// An Admission is what this job may do.
type Admission struct {
	Phase Phase
	// Reason says why it is Nothing, or less than was to be expected; for people.
	Reason string
}

// Facts are what Admit must know beside the runner's words.
type Facts struct {
	OIDC          bool   // ACTIONS_ID_TOKEN_REQUEST_URL is set: the job can ask for an identity
	ClassicScopes string // of a classic personal token, as the API told; "" for every other token
	Root          bool   // we are root
	Sudo          bool   // sudo -n works
}

// dependabot is Dependabot's user id on github.com; elsewhere it is known by its name,
// which is enough here, since whoever takes it only loses rights. Jobs that it starts
// are treated as a fork's: a read-only token and no secrets.
const (
	dependabot      = 49699333
	dependabotLogin = "dependabot[bot]"
)

// Admit decides what this job does: by the event, by the phase that is asked for, and
// by whose code it is. Whatever cannot be done is a StopError whose hint is the YAML
// that mends it; an event that asks for nothing is an Admission of Nothing.
//
// For issue_comment and workflow_dispatch the caller sets e.PR from the API before;
// while it is not set, the code is taken for a fork's.
//
// Facts.ClassicScopes are known only after a first request. Whoever makes none before
// Admit asks Admit again when they are known, and before anything runs.
func Admit(r Runner, e Event, in Inputs, facts Facts) (Admission, error) {
	if !strings.EqualFold(r.Repository, e.Repository.Name) {
		return Admission{}, refuseRepository(r, e)
	}
	if r.EventName != e.Name {
		return Admission{}, refuseEventName(r, e)
	}
	if a, idle := e.idle(); idle {
		return a, nil
	}
	a, err := e.admit(in)
	if err != nil || !a.Phase.Runs() {
		return a, err
	}
	if err := e.admitCode(r, in, facts); err != nil {
		return Admission{}, err
	}
	return a, nil
}

// idle tells events that ask for nothing.
func (e Event) idle() (Admission, bool) {
	var why string
	switch {
	case e.OnIssue:
		why = "the comment is on an issue, not on a pull request"
	case e.Name == eventIssueComment && e.Action != "created":
		why = "the comment was " + e.Action + ": only new comments count, since an old one may be changed long after it was read"
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

// foreign reports whether the code is a fork's, or not known not to be.
func (e Event) foreign() bool {
	if e.PR == nil {
		return e.Name != eventWorkflowDispatch || e.Number != 0
	}
	return e.PR.Fork
}

// readOnly reports whether GitHub gives this job a token that can only read.
func (e Event) readOnly() bool {
	return e.Name == eventPullRequest && (e.foreign() || e.SenderID == dependabot || e.SenderLogin == dependabotLogin)
}

const readOnlyReason = "the token of this job can only read, because the pull request is a fork's or Dependabot's: " +
	"a second workflow, on workflow_run, posts the comment (fumehood-report.yml among fumehood's .github/examples)"

// admit decides by event and phase alone.
func (e Event) admit(in Inputs) (Admission, error) {
	switch {
	case in.Phase == PhaseTrigger:
		if e.Name != eventIssueComment {
			return Admission{}, refuseTrigger(e)
		}
		return Admission{Phase: Trigger}, nil
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
	case in.Phase != PhaseAuto:
		return Admission{}, refusePhase(in)
	}
	return e.auto()
}

func (e Event) auto() (Admission, error) {
	switch {
	case e.Name == eventWorkflowRun:
		return Admission{Phase: Report}, nil
	case e.readOnly():
		return Admission{Phase: Run, Reason: readOnlyReason}, nil
	case e.Name == eventWorkflowDispatch && e.PR == nil && e.Number == 0:
		return Admission{Phase: Run, Reason: "no pull request was named: there is no comment"}, nil
	case e.Name != eventPullRequest && e.foreign():
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
	case e.foreign() && facts.OIDC:
		return refuseOIDC()
	case e.foreign() && (facts.ClassicScopes != "" || personal(in.Token)):
		return refusePersonalToken()
	case e.Name != eventIssueComment && strings.TrimSpace(in.Plan) == "":
		return refuseNoPlan()
	}
	return nil
}

// personal reports whether a token is a classic personal token or an OAuth app's, which
// act with all the rights of a person. GitHub has written these prefixes since 2021;
// an older token is known by its scopes alone.
func personal(token string) bool {
	return strings.HasPrefix(token, "ghp_") || strings.HasPrefix(token, "gho_")
}
