// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func actionCommand() *command {
	return &command{
		name:     "action",
		synopsis: "what the GitHub Action does in a job; everything comes by the environment",
		usage: `

Reads the runner's variables (GITHUB_*, RUNNER_*), the event file and the action's
inputs (INPUT_PLAN, INPUT_POLICY, … as action.yml maps them), and writes outputs,
step summary, comment and check run. It is started by action.yml; from a desk use
fumehood run.

examples:
  fumehood run --plan plan.yaml --workspace .      the same gate, from a desk
`,
		run: runAction,
	}
}

// A job is one step of a workflow that this process is.
type job struct {
	*invocation
	in      action.Inputs
	runner  action.Runner
	event   action.Event
	console *action.Console
	outputs *action.Outputs
	summary action.Summary
	hub     *github.Client

	dir     string // ours alone, below the runner's temporary folder
	phase   action.Phase
	skipped string // why there was nothing to do

	request request // what shall run
	pr      github.PullRequest
	source  *source         // the base repository's commits, once opened
	org     *place          // the organisation's policy, once read
	legs    []leg           // what ran, or what was reported
	notices []report.Notice // for the summary alone
	outlet  *outlet.Outlet  // what is told of what others left passes
	told    bool            // the step summary has been written

	problems []action.Problem // with the inputs
	telling  telling
}

// runAction never lets an error pass without a conclusion: a job whose output is
// empty would look as if nothing had been wrong.
func runAction(c *invocation) int {
	f := c.Flags()
	if code, ok := c.Parse(f); !ok {
		return code
	}
	j, err := c.newJob(os.Getenv)
	if err != nil {
		return j.refuse(err)
	}
	defer j.cleanUp()
	err = j.do()
	j.tellCollector()
	return j.end(err)
}

// newJob reads everything that is said about this job. The console is there even
// when it fails.
func (c *invocation) newJob(getenv func(string) string) (*job, error) {
	j := &job{invocation: c, console: action.NewConsole(c.Stdout, rand.Text)}
	for _, secret := range action.Secrets(getenv) {
		if err := j.console.Mask(secret); err != nil {
			return j, err
		}
	}
	var err error
	if j.runner, err = action.ReadRunner(getenv); err != nil {
		return j, err
	}
	j.outputs, j.summary = &action.Outputs{Path: j.runner.Output}, action.Summary{Path: j.runner.Summary}
	in, problems := action.ReadInputs(getenv)
	if len(problems) > 0 {
		j.console.Problems(problems)
		j.problems = problems
		return j, &proposal.StopError{Code: "input.invalid", Message: fmt.Sprintf("%d of the inputs cannot be used", len(problems)), Hint: "each is named, with what would be right"}
	}
	j.in = in
	if err := j.mask(); err != nil {
		return j, err
	}
	if err := j.readCollector(getenv); err != nil {
		return j, err
	}
	if in.Token == "" {
		return j, &proposal.StopError{Code: "input.token", Message: "the input github-token is empty",
			Hint: "leave the input out, so that it is the job's own token; a secret that does not exist, or that this event does not get, is empty, too"}
	}
	if j.event, err = action.LoadEvent(j.runner); err != nil {
		return j, err
	}
	if j.dir, err = os.MkdirTemp(j.runner.Temp, "fumehood-"); err != nil {
		return j, &proposal.StopError{Code: "runner.temp", Message: "cannot make a folder in RUNNER_TEMP", Err: err}
	}
	j.hub, err = github.New(github.Options{BaseURL: j.runner.APIURL, Token: in.Token, Repository: j.runner.Repository})
	return j, err
}

// do is the whole of a job, phase by phase.
func (j *job) do() error {
	if j.event.Name == "issue_comment" && !j.addressed() {
		j.skipped = "the comment asks nothing of fumehood"
		return nil
	}
	if err := j.admit(); err != nil || j.phase == action.Nothing {
		return err
	}
	if err := j.identify(); err != nil || j.skipped != "" {
		return err
	}
	switch j.phase {
	case action.Trigger:
		return j.apologise(j.trigger())
	case action.Report:
		return j.reportAll()
	case action.Run:
		if err := j.prepare(); err != nil || j.skipped != "" {
			return errors.Join(err, j.leaveWord(err))
		}
		return j.runAll()
	}
	if j.event.Name == "issue_comment" {
		if proceed, err := j.judge(); err != nil || !proceed {
			return j.apologise(err)
		}
	}
	return j.runAndReport()
}

// leaveWord leaves a report of a run that could not begin, for the job that reports.
func (j *job) leaveWord(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(j.abandon(err), j.writeSummary(report.Page{}))
}

// runAndReport tells of a run in the same job, whatever came of it.
func (j *job) runAndReport() error {
	err := j.prepare()
	if j.skipped != "" {
		return err
	}
	if err == nil {
		err = j.runAll()
	}
	if len(j.legs) == 0 && err != nil {
		err = errors.Join(err, j.abandon(err))
	}
	return errors.Join(err, j.tell())
}

// reportAll tells what the jobs that ran have left. That it cannot be read is told, too.
func (j *job) reportAll() error {
	err := j.gather()
	if j.Ctx.Err() != nil {
		return err
	}
	if err != nil {
		j.legs = []leg{stoppedLeg(j, err)}
	}
	return errors.Join(err, j.tell())
}

// admit asks what this job may do. For comments it needs the pull request first.
func (j *job) admit() error {
	if err := j.ask(); err != nil {
		return err
	}
	a, err := action.Admit(j.runner, j.event, j.in, action.Facts{
		OIDC: os.Getenv("ACTIONS_ID_TOKEN_REQUEST_URL") != "", ClassicScopes: j.hub.Scopes(),
		Root: os.Geteuid() == 0, Sudo: canSudo(),
	})
	if err != nil {
		return err
	}
	if j.phase = a.Phase; a.Phase == action.Nothing {
		j.skipped = a.Reason
	} else if a.Reason != "" {
		j.console.Notice(a.Reason)
	}
	return nil
}

// ask reads the pull request that the event names, as the API has it now.
func (j *job) ask() error {
	if j.event.Number == 0 || j.event.OnIssue {
		return nil
	}
	pr, err := j.hub.PullRequest(j.Ctx, j.event.Number)
	if err != nil {
		return err
	}
	j.pr = pr
	if j.event.PR == nil {
		j.event.PR = describePR(pr)
	}
	return nil
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

// isFork reports whether a pull request's code is somebody else's: of another
// repository, or of one that is gone.
func isFork(pr github.PullRequest) bool {
	return pr.Head.RepositoryID == 0 || pr.Head.RepositoryID != pr.Base.RepositoryID
}

func canSudo() bool {
	if os.Geteuid() == 0 {
		return true
	}
	cmd := exec.Command(sudo, "-n", "/usr/bin/true")
	cmd.Env = []string{"PATH=" + systemPath}
	return cmd.Run() == nil
}

// end writes the outputs and says how the step went.
func (j *job) end(err error) int {
	o := j.outcome(err)
	switch {
	case err != nil && o.Cancelled:
		j.console.Warning("the run was cancelled before it was done")
	case err != nil:
		j.console.Stop(j.stopError(err))
	case j.skipped != "":
		j.console.Progress("nothing to do: %s", terminal.Line(j.skipped))
	}
	conclusion, fails := action.Conclude(o, j.in.FailOn)
	if err == nil && len(j.legs) > 0 {
		j.verdict(conclusion, fails)
	}
	out := j.write(conclusion, o.Totals)
	if err != nil && !j.told {
		out = errors.Join(out, j.writeStop(err))
	}
	if out != nil {
		j.console.Stop(out)
	}
	_ = j.console.Close()
	switch {
	case (err != nil || o.Stopped) && fails || out != nil:
		return exitStopped
	case fails:
		return exitRefused
	}
	return exitOK
}

// outcome sums up what a conclusion is drawn from. An error is never nothing to do.
func (j *job) outcome(err error) action.Outcome {
	var o action.Outcome
	if len(j.legs) > 0 {
		o = action.OutcomeOf(j.reports()...)
	}
	switch {
	case err != nil && (j.Ctx.Err() != nil || proposal.FailureOf(err).Code == "run.cancelled"):
		o.Cancelled = true
	case err != nil:
		o.Stopped = true
	case j.skipped != "":
		o.Skipped = true
	}
	return o
}

// write sets the outputs that every phase has.
func (j *job) write(conclusion string, t proposal.Totals) error {
	values := [][2]string{{"conclusion", conclusion}, {"sha", j.request.Head},
		{"allowed", strconv.Itoa(t.Allowed)}, {"denied", strconv.Itoa(t.Denied)}, {"failed", strconv.Itoa(t.Failed)}}
	if j.request.PR > 0 {
		values = append(values, [2]string{"pr", strconv.Itoa(j.request.PR)}, [2]string{"head", j.request.Head}, [2]string{"base", j.request.Base})
	}
	if j.phase.Runs() && len(j.legs) > 0 {
		values = append(values, j.artifactOutputs()...)
	}
	for _, v := range values {
		if err := j.outputs.Set(v[0], v[1]); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) reports() []proposal.Report {
	var list []proposal.Report
	for _, l := range j.legs {
		list = append(list, l.report)
	}
	return list
}

// cleanUp removes what nobody needs later: the code and the store, not the artifact.
func (j *job) cleanUp() {
	if j.dir == "" {
		return
	}
	for _, name := range []string{"store", "workspace", "policy", "organisation", "plans"} {
		_ = os.RemoveAll(filepath.Join(j.dir, name))
	}
}
