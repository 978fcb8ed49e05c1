// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options are what a step needs from its process. All but Settle are required.
type Options struct {
	// Getenv reads the process's environment: the runner's variables and the inputs.
	Getenv func(string) string
	// Stdout is the step's standard output, on which the runner reads workflow commands.
	// Nothing else may write to it.
	Stdout io.Writer
	// Program is the absolute path of fumehood. Its commands run and review are started as root, with
	// PATH, HOME, LANG and this process's FUMEHOOD_CACHE as their environment; where this process is
	// not root, only root may be able to change that file and the directories above it.
	Program string
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
		return errors.New("cannot read a job without Getenv")
	case o.Stdout == nil:
		return errors.New("cannot run a job without Stdout")
	case !filepath.IsAbs(o.Program):
		return errors.New("cannot run a job without the absolute path of Program")
	case o.Version == "":
		return errors.New("cannot run a job without a version")
	case o.Compile == nil:
		return errors.New("cannot run a job without Compile")
	}
	return nil
}

// A Job is what the environment says about a step: its inputs, its event, and what it
// may write to. Only a check run's pull request is added to it, by readCheck.
type Job struct {
	options   Options
	in        action.Inputs
	runner    action.Runner
	event     action.Event
	console   *action.Console
	outputs   *action.Outputs
	summary   action.Summary
	gh        *github.Client
	redactor  *redact.Redactor
	collector collector
	dir       string // only for this step, in RUNNER_TEMP

	started time.Time          // when this step started, by this machine's clock
	ran     github.WorkflowRun // the run of the event, as the API reports it
	known   answers            // of the API

	check github.KnownCheckRun // whose plan is requested again, as the API reports it
	rerun subject              // check's

	configuredPolicy string // directory of the repository's rules in its configuration, once that is read
	durations        string // path of the file that keepDurations wrote, or ""
}

// An Outcome is the result of a part of a step, and the input of the next part.
type Outcome struct {
	Request Request               // what was asked for, on which commit
	Runs    []PlanRun             // what ran or is reported, in order
	Review  *review.Document      // the findings that were verified, or nil
	Found   *review.FoundFindings // the findings of a model that was asked, or nil
	Skipped string                // why there is nothing to do, for people; "" when there is
	// Summarized says that the step summary shows Runs.
	Summarized bool
	// Delivered says that Runs, of other jobs, were posted where the inputs ask for them.
	Delivered bool

	policy  string         // describeTips of the base's, "" when they were not read
	comment config.Comment // the configuration's
	sources []string       // the files of the commit, if it is on this machine
	asked   *askedDecision
}

// proceeds reports whether o, of a Trigger, leaves something to run.
func (o Outcome) proceeds() bool {
	return o.Skipped == "" && (len(o.Request.Plans) > 0 || o.Request.Command == reviewCommand)
}

// Do does what the environment asks for and returns how it went. An error is about the
// Options; everything else that goes wrong is part of the Conclusion and has been
// reported to the job's log.
func Do(ctx context.Context, o Options) (Conclusion, error) {
	j, err := Read(o)
	s := step{j}
	switch {
	case j == nil:
		return Conclusion{}, err
	case err != nil:
		return s.refuse(err), nil
	}
	defer j.Close()
	out, err := s.do(ctx)
	if failed := j.collector.send(ctx, out); failed != nil {
		j.console.PrintWarning(strings.ReplaceAll(j.plain(failed.Error()), "\n", " "))
	}
	return s.conclude(ctx, out, err), nil
}

// Read reads the environment and makes a directory in RUNNER_TEMP. Options that are not
// complete are an error without a Job. With any other error the Job can do nothing but
// report it: then the runner's variables, an input or the event cannot be used.
func Read(o Options) (*Job, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	j := &Job{options: o, started: time.Now(), console: action.NewConsole(o.Stdout, rand.Text)}
	for _, part := range []func() error{
		j.maskSecrets, j.readRunner, j.readInputs, j.maskInputs, j.readCollector, j.connect,
	} {
		if err := part(); err != nil {
			return j, err
		}
	}
	return j, nil
}

// maskSecrets comes first: every line after it may repeat what the environment holds.
func (j *Job) maskSecrets() error {
	for _, secret := range action.ListSecrets(j.options.Getenv) {
		if err := j.console.MaskSecret(secret); err != nil {
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
		j.console.PrintProblems(problems)
		return &inputsError{problems: problems, error: &proposal.StopError{Code: "input.invalid",
			Message: fmt.Sprintf("%d invalid inputs", len(problems)), Hint: "fix each input as shown for it"}}
	}
	j.in = in
	return nil
}

// masks are the values of the input mask.
func (j *Job) masks() []redact.Mask {
	masks := []redact.Mask{}
	for _, m := range j.in.Mask {
		masks = append(masks, redact.Mask(m))
	}
	return masks
}

// maskInputs makes the runner and everything that this job writes redact the input mask.
func (j *Job) maskInputs() error {
	for _, m := range j.in.Mask {
		if err := j.console.MaskSecret(m.Value); err != nil {
			return err
		}
	}
	var err error
	j.redactor, err = redact.New(redact.Options{Masks: j.masks()})
	return err
}

// connect reads the event, makes the job's directory and the client. It sends nothing.
func (j *Job) connect() (err error) {
	if j.in.Token == "" {
		return &proposal.StopError{Code: "input.token", Message: "input github-token is empty",
			Hint: "remove the input to use the job's own token; a secret that does not exist or is not available to this event is also empty"}
	}
	if j.event, err = action.LoadEvent(j.runner); err != nil {
		return err
	}
	if j.dir, err = os.MkdirTemp(j.runner.Temp, "fumehood-"); err != nil {
		return &proposal.StopError{Code: "runner.temp", Message: "cannot create a directory in RUNNER_TEMP", Err: err}
	}
	j.gh, err = github.New(github.Options{BaseURL: j.runner.APIURL, Token: j.in.Token, Repository: j.runner.Repository})
	return err
}

// isComment reports whether a comment started this step.
func (j *Job) isComment() bool { return j.event.Comment != nil && !j.event.OnIssue }

// Close removes the code and the store. The artifact stays, for the upload step.
func (j *Job) Close() {
	if j.dir == "" {
		return // or these would be names in the current directory
	}
	for _, name := range []string{"store", "workspace", policyDir, branchPolicyDir, "config", "organization", "plans"} {
		_ = os.RemoveAll(filepath.Join(j.dir, name))
	}
}
