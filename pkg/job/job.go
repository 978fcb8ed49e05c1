// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/record/otlp"
)

// Options are what a step needs from its process. All but Settle are required.
type Options struct {
	// Getenv reads the process's environment: the runner's variables and the inputs.
	Getenv func(string) string
	// Stdout is the step's standard output, on which the runner reads workflow commands.
	// Nothing else may write to it.
	Stdout io.Writer
	// Program is the command line of fumehood run, to which flags are added. Its first
	// element is an absolute path. It is started as root with an empty environment;
	// where this process is not root, only root may be able to change that file and
	// the directories above it.
	Program []string
	// Version is fumehood's own, for reports.
	Version string
	// Compile makes an engine, as policy.New does.
	Compile func(context.Context, policy.Options) (*policy.Engine, error)
	// Settle is comment.Options.Settle. Every job of a repository must have the same.
	Settle time.Duration
}

func (o Options) check() error {
	switch {
	case o.Getenv == nil:
		return errors.New("cannot do a job without an environment")
	case o.Stdout == nil:
		return errors.New("cannot do a job without a log")
	case len(o.Program) == 0 || !filepath.IsAbs(o.Program[0]):
		return errors.New("cannot do a job without the absolute path of a program that runs plans")
	case o.Version == "":
		return errors.New("cannot do a job without a version")
	case o.Compile == nil:
		return errors.New("cannot do a job without a policy engine")
	}
	return nil
}

// A Job is what the environment says about a step: its inputs, its event, and what it
// may write to. Reading it asks the network nothing, and nothing of it changes later.
type Job struct {
	options   Options
	in        action.Inputs
	runner    action.Runner
	event     action.Event
	console   *action.Console
	outputs   *action.Outputs
	summary   action.Summary
	gh        *github.Client
	redactor  *outlet.Outlet
	collector otlp.Options // without an Endpoint when the workflow names none
	dir       string       // ours alone, in RUNNER_TEMP
}

// An Outcome is what a part of a step came to, and what the next part is given.
type Outcome struct {
	Request Request   // what was asked for, on which commit
	Runs    []PlanRun // what ran or is reported, in order
	Skipped string    // why there is nothing to do, for people; "" when there is
	// Summarized says that the step summary shows Runs.
	Summarized bool

	files *changedFiles // nil when the commits were not compared
	asked *askedDecision
}

// proceeds reports whether o, of a Trigger, leaves something to run.
func (o Outcome) proceeds() bool { return o.Skipped == "" && len(o.Request.Plans) > 0 }

// Do does what the environment asks for and returns how it went. An error is about the
// Options; everything else that goes wrong is part of the Conclusion and has been
// reported to the job's log.
func Do(ctx context.Context, o Options) (Conclusion, error) {
	if err := o.check(); err != nil {
		return Conclusion{}, err
	}
	j, err := read(o)
	if err != nil {
		return j.refuse(err), nil
	}
	defer j.cleanUp()
	out, err := j.do(ctx)
	j.export(ctx, out)
	return j.conclude(ctx, out, err), nil
}

// read reads the environment. The Job that it returns has a console even with an error.
func read(o Options) (*Job, error) {
	j := &Job{options: o, console: action.NewConsole(o.Stdout, rand.Text)}
	for _, part := range []func() error{
		j.maskSecrets, j.readRunner, j.readInputs, j.maskInputs, j.readCollector, j.checkToken, j.readEvent, j.makeDir, j.connect,
	} {
		if err := part(); err != nil {
			return j, err
		}
	}
	return j, nil
}

// maskSecrets comes first: every line after it may repeat what the environment holds.
func (j *Job) maskSecrets() error {
	for _, secret := range action.Secrets(j.options.Getenv) {
		if err := j.console.Mask(secret); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) readRunner() error {
	var err error
	if j.runner, err = action.ReadRunner(j.options.Getenv); err != nil {
		return err
	}
	j.outputs, j.summary = &action.Outputs{Path: j.runner.Output}, action.Summary{Path: j.runner.Summary}
	return nil
}

// An inputsError is a StopError with each input that is wrong.
type inputsError struct {
	error
	problems []action.Problem
}

func (e *inputsError) Unwrap() error { return e.error }

func (j *Job) readInputs() error {
	in, problems := action.ReadInputs(j.options.Getenv)
	if len(problems) > 0 {
		j.console.Problems(problems)
		return &inputsError{problems: problems, error: &proposal.StopError{Code: "input.invalid",
			Message: fmt.Sprintf("%d of the inputs cannot be used", len(problems)), Hint: "each is named, with what would be right"}}
	}
	j.in = in
	return nil
}

// masks are the values of the input mask.
func (j *Job) masks() []outlet.Mask {
	masks := []outlet.Mask{}
	for _, m := range j.in.Mask {
		masks = append(masks, outlet.Mask(m))
	}
	return masks
}

// maskInputs has the runner, and everything that this job writes, redact the input mask.
func (j *Job) maskInputs() error {
	for _, m := range j.in.Mask {
		if err := j.console.Mask(m.Value); err != nil {
			return err
		}
	}
	var err error
	j.redactor, err = outlet.New(outlet.Options{Masks: j.masks()})
	return err
}

func (j *Job) checkToken() error {
	if j.in.Token != "" {
		return nil
	}
	return &proposal.StopError{Code: "input.token", Message: "the input github-token is empty",
		Hint: "leave the input out, so that it is the job's own token; a secret that does not exist, or that this event does not get, is empty, too"}
}

func (j *Job) readEvent() (err error) {
	j.event, err = action.LoadEvent(j.runner)
	return err
}

func (j *Job) makeDir() error {
	var err error
	if j.dir, err = os.MkdirTemp(j.runner.Temp, "fumehood-"); err != nil {
		return &proposal.StopError{Code: "runner.temp", Message: "cannot make a folder in RUNNER_TEMP", Err: err}
	}
	return nil
}

func (j *Job) connect() (err error) {
	j.gh, err = github.New(github.Options{BaseURL: j.runner.APIURL, Token: j.in.Token, Repository: j.runner.Repository})
	return err
}

// cleanUp removes the code and the store. The artifact stays, for the upload step.
func (j *Job) cleanUp() {
	for _, name := range []string{"store", "workspace", policyDir, "organisation", "plans"} {
		_ = os.RemoveAll(filepath.Join(j.dir, name))
	}
}

// do chooses what this step does, by its event and by the phase that it is admitted to.
func (j *Job) do(ctx context.Context) (Outcome, error) {
	if j.isComment() && !j.addressed() {
		return Outcome{Skipped: "the comment asks nothing of fumehood"}, nil
	}
	t, phase, skipped, err := j.admit(ctx)
	if err != nil || skipped != "" {
		return Outcome{Skipped: skipped}, err
	}
	t, skipped, err = j.identify(ctx, phase, t)
	if err != nil || skipped != "" {
		return Outcome{Request: t.Request, Skipped: skipped}, err
	}
	switch phase {
	case action.Trigger:
		return j.trigger(ctx, t)
	case action.Report:
		return j.gatherAndReport(ctx, t)
	case action.Run, action.RunAndReport:
		return j.run(ctx, phase, t)
	}
	return Outcome{Request: t.Request}, fmt.Errorf("internal error: unknown phase %v", phase)
}

func (j *Job) isComment() bool { return j.event.Name == "issue_comment" }

// trigger judges a comment for the jobs that follow, which hold no right to write.
func (j *Job) trigger(ctx context.Context, t Task) (Outcome, error) {
	out, err := Trigger{Job: j, Task: t, Base: j.base(t.PR.Base.SHA)}.Do(ctx)
	if err == nil {
		err = j.handOver(out)
	}
	return out, j.answerFailure(ctx, t.PR.Number, err)
}

// handOver sets the outputs that the jobs that run and report read.
func (j *Job) handOver(o Outcome) error {
	outputs := [][2]string{{"run", fmt.Sprint(o.proceeds())}}
	if o.proceeds() {
		text, err := o.Request.encode()
		if err != nil {
			return err
		}
		outputs = append(outputs, [2]string{"request", text})
	}
	for _, o := range outputs {
		if err := j.outputs.Set(o[0], o[1]); err != nil {
			return err
		}
	}
	return nil
}

// run runs plans and shows the results. A comment in a job that does both is judged
// first, and then has the base that it was judged by.
func (j *Job) run(ctx context.Context, phase action.Phase, t Task) (Outcome, error) {
	base := j.base(t.Request.Base)
	var asked *askedDecision
	if j.isComment() && phase == action.RunAndReport {
		base = j.base(t.PR.Base.SHA)
		judged, err := Trigger{Job: j, Task: t, Base: base}.Do(ctx)
		if err != nil || !judged.proceeds() {
			return judged, j.answerFailure(ctx, t.PR.Number, err)
		}
		t.Request, asked = judged.Request, judged.asked
	}
	ran, err := Run{Job: j, Task: t, Base: base}.Do(ctx)
	if ran.asked = asked; ran.Skipped != "" {
		return ran, err
	}
	shown, shownErr := Report{Job: j, Outcome: ran, SummaryOnly: phase == action.Run}.Do(ctx)
	return shown, errors.Join(err, shownErr)
}

// gatherAndReport shows what the jobs that ran have left. That it cannot be read is
// shown as well, unless this job is cancelled.
func (j *Job) gatherAndReport(ctx context.Context, t Task) (Outcome, error) {
	found, err := Gather{Job: j, Task: t, Base: j.base(t.Request.Base)}.Do(ctx)
	if ctx.Err() != nil {
		return found, err
	}
	if err != nil {
		found.Runs = []PlanRun{j.stoppedRun(t.Request, err)}
	}
	shown, shownErr := Report{Job: j, Outcome: found}.Do(ctx)
	return shown, errors.Join(err, shownErr)
}
