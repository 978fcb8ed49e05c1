// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/internal/github/action"
)

// A step does a Job: it chooses what to do, and reports the result.
type step struct{ job *Job }

// do chooses what this step does, by its event and by the phase that it is admitted to.
func (s step) do(ctx context.Context) (Outcome, error) {
	if s.job.isComment() && !s.job.addressed() {
		return Outcome{Skipped: "the comment is not a command for fumehood"}, nil
	}
	if skipped, err := s.job.readCheck(ctx); err != nil || skipped != "" {
		return Outcome{Skipped: skipped}, err
	}
	t, phase, skipped, err := s.admit(ctx)
	if err != nil || skipped != "" {
		if s.job.event.Unsupported != "" {
			s.job.console.PrintNotice(skipped)
		}
		return Outcome{Skipped: skipped}, err
	}
	if err := s.job.checkAuditKey(phase); err != nil {
		return Outcome{}, err
	}
	if phase == action.Split {
		return Outcome{}, s.job.split()
	}
	t, skipped, err = s.identify(ctx, phase, t)
	if err != nil || skipped != "" {
		return Outcome{Request: t.Request, Skipped: skipped}, err
	}
	switch phase {
	case action.Trigger:
		return s.trigger(ctx, t)
	case action.Report:
		return s.gatherAndReport(ctx, t)
	case action.Find:
		return s.find(ctx, t)
	case action.Run, action.RunAndReport:
		return s.run(ctx, phase, t)
	case action.Review, action.ReviewAndReport:
		return s.verify(ctx, phase, t)
	}
	return Outcome{Request: t.Request}, fmt.Errorf("internal error: unknown phase %v", phase)
}

// trigger judges a comment for the jobs that follow, which hold no right to write.
func (s step) trigger(ctx context.Context, t Task) (Outcome, error) {
	out, err := Trigger{Job: s.job, Task: t, Base: s.job.Base(t.baseBranch())}.Do(ctx)
	if err == nil {
		err = s.handOver(out)
	}
	return out, conversation{s.job, t.PR.Number}.answerFailure(ctx, err)
}

// handOver sets the outputs that the jobs that run and report read.
func (s step) handOver(o Outcome) error {
	outputs := [][2]string{{"run", fmt.Sprint(o.proceeds())}}
	if o.proceeds() {
		text, err := o.Request.encode()
		if err != nil {
			return err
		}
		outputs = append(outputs, [2]string{"request", text}, [2]string{"command", o.Request.Command})
	}
	for _, o := range outputs {
		if err := s.job.outputs.Set(o[0], o[1]); err != nil {
			return err
		}
	}
	return nil
}

// run runs plans and shows the results. A comment in a job that does both is judged
// first, and then has the base that it was judged by.
func (s step) run(ctx context.Context, phase action.Phase, t Task) (Outcome, error) {
	base := s.job.Base(t.baseBranch())
	var asked *askedDecision
	if s.job.isComment() && phase == action.RunAndReport {
		judged, err := Trigger{Job: s.job, Task: t, Base: base}.Do(ctx)
		if err != nil || !judged.proceeds() {
			return judged, conversation{s.job, t.PR.Number}.answerFailure(ctx, err)
		}
		t.Request, asked, t.fresh = judged.Request, judged.asked, false
	}
	ran, err := Run{Job: s.job, Task: t, Base: base}.Do(ctx)
	ran.policy, ran.comment = describeTips(base.tips), base.comment()
	if ran.asked = asked; ran.Skipped != "" {
		return ran, err
	}
	shown, shownErr := Report{Job: s.job, Outcome: ran, SummaryOnly: phase == action.Run}.Do(ctx)
	return shown, errors.Join(err, shownErr)
}

// verify verifies findings and shows what that showed.
func (s step) verify(ctx context.Context, phase action.Phase, t Task) (Outcome, error) {
	verified, err := Verify{Job: s.job, Task: t, Base: s.job.Base(t.baseBranch())}.Do(ctx)
	if verified.Skipped != "" {
		return verified, err
	}
	shown, shownErr := Report{Job: s.job, Outcome: verified, SummaryOnly: phase == action.Review}.Do(ctx)
	return shown, errors.Join(err, shownErr)
}

// find asks a model, and shows in the step summary what came of it.
func (s step) find(ctx context.Context, t Task) (Outcome, error) {
	asked, err := Find{Job: s.job, Task: t, Base: s.job.Base(t.baseBranch())}.Do(ctx)
	if asked.Skipped != "" {
		return asked, err
	}
	if asked.Found != nil {
		return asked, errors.Join(err, s.job.summary.Write("## fumehood review\n\n"+asked.Found.Describe()+"\n"))
	}
	shown, shownErr := Report{Job: s.job, Outcome: asked, SummaryOnly: true}.Do(ctx)
	return shown, errors.Join(err, shownErr)
}

// gatherAndReport shows the results of the jobs that ran. A failure to read them is shown
// as well, unless this job is cancelled.
func (s step) gatherAndReport(ctx context.Context, t Task) (Outcome, error) {
	base := s.job.Base(t.baseBranch())
	found, err := Gather{Job: s.job, Task: t, Base: base}.Do(ctx)
	if s.job.isComment() {
		// Whom to mention, also when Gather found no report.
		if _, unread := base.configuration(ctx); unread != nil && err == nil {
			s.job.console.PrintWarning("no person is mentioned: " + unread.Error())
		}
	}
	found.policy, found.comment = describeTips(base.tips), base.comment()
	if ctx.Err() != nil {
		return found, err
	}
	if err == nil {
		err = errors.Join(s.job.keepEvidence(found.Runs), s.job.keepDurations(found.Runs))
	}
	if err != nil {
		found.Runs = []PlanRun{s.job.stoppedRun(t.Request, err)}
	}
	shown, shownErr := Report{Job: s.job, Outcome: found}.Do(ctx)
	err = errors.Join(err, shownErr)
	shown.Delivered = err == nil
	return shown, err
}
