// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/evidence/report/timeline"
	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/keep"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Run decides and runs the plans of a request, each in a sandbox of its own.
type Run struct {
	Job  *Job
	Task Task
	Base *Base
}

// A prepared is what a run needs on this machine.
type prepared struct {
	request   Request
	workspace workspace
}

// Do runs the plans, or the workflow's own plan when the request has none. A plan that
// could not be run has a report with an error. Skipped says that
// another job reports on the pull request's present commit.
func (r Run) Do(ctx context.Context) (Outcome, error) {
	o := Outcome{Request: r.Task.Request}
	var err error
	if o.Skipped, err = r.checkPullRequest(ctx); o.Skipped != "" {
		return o, nil
	}
	if err == nil && r.isProposedNothing() {
		l := r.Job.stoppedRun(r.Task.Request, nil)
		l.dir = r.Job.artifactDir()
		o.Runs = []PlanRun{l}
		return o, l.save()
	}
	var p prepared
	if err == nil {
		p, err = r.prepare(ctx)
	}
	if err != nil {
		var l PlanRun
		l, err = r.reportNotStarted(ctx, err)
		o.Runs = []PlanRun{l}
		return o, err
	}
	o.Request = p.request
	o.sources = p.workspace.sources
	o.Runs, err = r.runAll(ctx, p)
	return o, err
}

// isProposedNothing reports whether the reviewer's job succeeded and its plan has no proposals.
func (r Run) isProposedNothing() bool {
	if r.Job.in.ReviewerResult != action.ReviewerSucceeded || len(r.Task.Request.Plans) > 0 {
		return false
	}
	own, err := r.readInputPlan()
	return err == nil && plan.ProposesNothing([]byte(own.Document), own.File)
}

// checkPullRequest makes sure that the request is still about the pull request's commit.
func (r Run) checkPullRequest(ctx context.Context) (skipped string, err error) {
	q := r.Task.Request
	if q.PR == 0 {
		return "", nil
	}
	pr := r.Task.PR
	if !r.Task.fresh {
		if pr, err = r.Job.gh.PullRequest(ctx, q.PR); err != nil {
			return "", err
		}
	}
	err = q.checkHead(pr)
	switch {
	case err == nil && pr.State == "closed" && r.Job.event.Name == "pull_request":
		return "the pull request was closed meanwhile", nil
	case err == nil:
		return "", nil
	case r.Job.event.Name == "pull_request":
		return fmt.Sprintf("the pull request has a newer commit (%.12s), whose own run reports", pr.Head.SHA), nil
	}
	return "", err
}

// reportNotStarted leaves a report of a run that could not start, for the job that
// reports. It returns err too.
func (r Run) reportNotStarted(ctx context.Context, err error) (PlanRun, error) {
	shown := err
	if ctx.Err() != nil {
		shown = &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled", Err: err}
	}
	l := r.Job.stoppedRun(r.Task.Request, shown)
	l.dir = r.Job.artifactDir()
	return l, errors.Join(err, l.save())
}

// prepare fetches the commit, the policy and the plans to this machine.
func (r Run) prepare(ctx context.Context) (prepared, error) {
	p := prepared{request: r.Task.Request}
	r.Job.console.BeginGroup("fumehood: commit " + p.request.Head[:12])
	defer r.Job.console.EndGroup()
	if len(p.request.Plans) == 0 {
		if err := r.Job.reviewerFailed(); err != nil {
			return p, err
		}
	}
	if err := r.Base.fetchPolicy(ctx, p.request.Head, p.request.Base); err != nil {
		return p, err
	}
	if _, err := r.Base.policies(ctx); err != nil { // errors surface before anything is made for the run
		return p, err
	}
	if len(p.request.Plans) == 0 {
		own, err := r.readInputPlan()
		if err != nil {
			return p, err
		}
		p.request.Plans = []Planned{own}
	}
	var err error
	p.workspace, err = r.writeWorkspace(ctx)
	return p, err
}

// runAll runs each plan until ctx is done.
func (r Run) runAll(ctx context.Context, p prepared) ([]PlanRun, error) {
	var runs []PlanRun
	var errs error
	for i, planned := range p.request.Plans {
		if ctx.Err() != nil {
			break
		}
		l, err := r.runOne(ctx, p, r.newPlanRun(i, p.request), planned)
		runs = append(runs, l)
		r.print(l)
		errs = errors.Join(errs, err)
	}
	return runs, errs
}

// newPlanRun names the plan with number i and the directories that its run leaves.
func (r Run) newPlanRun(i int, q Request) PlanRun {
	n := strconv.Itoa(i)
	l := PlanRun{Name: q.Plans[i].Name, local: true, document: []byte(q.Plans[i].Document),
		dir: filepath.Join(r.Job.artifactDir(), n), files: filepath.Join(r.Job.dir, "files", n)}
	if len(q.Plans) == 1 {
		l.dir = r.Job.artifactDir()
	}
	return l
}

// runOne runs one plan as root, in a process without the token, and reads what it left.
func (r Run) runOne(ctx context.Context, p prepared, l PlanRun, planned Planned) (PlanRun, error) {
	j := r.Job
	var problems []proposal.Problem
	if l.plan, problems = plan.Decode(l.document, planned.File); len(problems) > 0 {
		return r.stopped(p, l, invalidPlan(l.document, planned.File, problems))
	}
	if refused := l.plan.Refused(); len(refused) > 0 {
		j.console.PrintWarning(j.plain(firstProblem(planned.File, refused))) // it may quote a secret
	}
	for _, w := range plan.Warnings(l.document, planned.File) {
		j.console.PrintWarning(plan.Describe(planned.File, w))
	}
	l.Report = j.stoppedReport(p.request, &proposal.StopError{Code: "run.lost", Message: "the run has no report"})
	spec, err := r.specOf(ctx, p, l, planned)
	if err != nil {
		return r.stopped(p, l, err)
	}
	j.console.BeginGroup(fmt.Sprintf("fumehood: running %d proposals%s", len(l.plan.Proposals), ofPlan(planned.Name)))
	code, err := j.runChild(ctx, "run", spec, nil)
	j.console.EndGroup()
	if err != nil {
		return r.stopped(p, l, err)
	}
	return r.readBack(p, l, code)
}

// stopped leaves a report of a run that stopped before it had one.
func (r Run) stopped(p prepared, l PlanRun, err error) (PlanRun, error) {
	l.Report = r.Job.stoppedReport(p.request, err)
	return l, errors.Join(err, l.save())
}

func ofPlan(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// specOf writes the plan to a file, and returns what the child is to do.
func (r Run) specOf(ctx context.Context, p prepared, l PlanRun, planned Planned) (runspec.Spec, error) {
	j, planFile := r.Job, filepath.Join(r.Job.dir, "plan")
	if err := errors.Join(os.MkdirAll(l.dir, 0o700), os.MkdirAll(filepath.Dir(l.files), 0o700)); err != nil {
		return runspec.Spec{}, err
	}
	if err := errors.Join(l.keepPlan(j.redactor), os.WriteFile(planFile, l.document, 0o600)); err != nil {
		return runspec.Spec{}, err
	}
	var named []string
	if j.in.Network == action.NetworkPolicy {
		named = registriesOf(l.plan)
	}
	s, err := r.describe(ctx, p.workspace, named)
	if err != nil {
		return s, err
	}
	s.Plan, s.Artifacts, s.Report, s.AuditFile = planFile, l.files, filepath.Join(l.dir, reportName),
		filepath.Join(l.dir, auditName)
	s.Subject.Left, s.Subject.Unenforced, s.Subject.Approval = p.workspace.left, p.workspace.doubts, planned.Approval
	s.MergeBase, s.TreeLeft = p.workspace.mergeBase, p.workspace.treeLeft
	if !j.in.CompareBase {
		s.CompareBase = "false"
	}
	return s, r.addCaches(ctx, &s)
}

// describe returns what run and review have in common. named are registries that a plan requests.
func (r Run) describe(ctx context.Context, w workspace, named []string) (runspec.Spec, error) {
	j, q := r.Job, r.Task.Request
	s := runspec.Spec{
		Workspace: w.dir, Tools: j.options.Getenv("PATH"), Timeout: j.in.Timeout,
		Observe: j.in.Mode == action.ModeObserve,
		Owner:   fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Subject: gate.Subject{Repository: j.runner.Repository, Fork: r.Task.Fork, PR: q.PR, HeadSHA: q.Head,
			BaseSHA: q.Base, Cwd: j.cwd()},
		Ceiling: j.in.Limits, Masks: j.masks(), Proxies: process.FindProxies(j.options.Getenv),
	}
	if j.runner.Environment == "github-hosted" {
		s.Cache = "false" // the machine is thrown away after the job
	}
	if j.in.Setup != action.SetupConfigured {
		s.Setup = j.in.Setup
	}
	if err := r.Base.addPolicies(ctx, &s); err != nil {
		return s, err
	}
	var err error
	if s.Subject.Context, err = r.Base.contextOf(ctx, r.Task); err != nil {
		return s, err
	}
	configured, err := r.Base.configuration(ctx)
	if err != nil {
		return s, err
	}
	s.Config, s.Rootfs = configured.file, configured.rootfs
	found, err := planning.FindSetup(configured.config, w.dir, s.Tools)
	if err != nil {
		return s, err
	}
	requested := found.Registries()
	if len(s.Origins) > 0 {
		requested = append(requested, named...)
	}
	if len(requested) > 0 { // the child cannot find them, because its HOME is root's
		s.Registries, err = registry.Discover(ctx, requested)
	}
	return s, err
}

// A cacheInput is an input that names a directory of a cache, relative to Runner.Temp.
type cacheInput struct {
	name, dir string
	off       bool
	why       string // it is off: what the configuration has, or not
}

// addCaches adds layers and results in directories that were restored.
func (r Run) addCaches(ctx context.Context, s *runspec.Spec) error {
	in := r.Job.in
	base, err := r.Base.configuration(ctx)
	if err != nil {
		return err
	}
	layers := base.config.Layers
	s.Layers, s.LayersExchange, err = r.openCache("input.layers-cache",
		cacheInput{"layers-cache", in.LayersCache, layers != nil && !*layers, "has layers: false"})
	if err != nil {
		return err
	}
	s.Results, s.ResultsExchange, err = r.openCache("input.results-cache",
		cacheInput{"results-cache", in.ResultsCache, base.config.Results != "read", "does not have results: read"})
	return err
}

// openCache returns the mode and the directory of an input. What the configuration switches off is not
// used. Only a job that keep.Allowed leaves its own there.
func (r Run) openCache(code string, i cacheInput) (mode, dir string, err error) {
	j := r.Job
	switch {
	case i.dir == "":
		return "", "", nil
	case i.off:
		j.console.PrintNotice("input " + i.name + " has no effect: " + config.Path +
			" of the default branch " + i.why)
		return "", "", nil
	}
	dir = filepath.Join(j.runner.Temp, i.dir)
	if !keep.IsAllowed(j.options.Getenv, os.ReadFile) {
		return "read", dir, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", &proposal.StopError{Code: code, Message: "cannot make the directory of input " + i.name,
			Hint: "name a directory of actions/cache/save in RUNNER_TEMP", Err: err}
	}
	return "write", dir, nil
}

// registriesOf returns the registries that a plan requests.
func registriesOf(plan proposal.Plan) (names []string) {
	for _, p := range plan.Proposals {
		names = append(names, registry.GrantedNames(p.Network)...)
	}
	return names
}

// readBack reads the report and the log that a child left, and verifies the log.
func (r Run) readBack(p prepared, l PlanRun, code int) (PlanRun, error) {
	j := r.Job
	data, err := os.ReadFile(filepath.Join(l.dir, reportName))
	if err != nil {
		return l, errors.Join(&proposal.StopError{Code: "run.lost",
			Message: fmt.Sprintf("the run ended with exit code %d and no report", code), Err: err}, l.save())
	}
	if l.Report, err = report.Read(data, MaxReport); err != nil {
		l.Report = j.stoppedReport(p.request, err)
		return l, err
	}
	if f, err := os.Open(filepath.Join(l.dir, auditName)); err == nil {
		l.audit = verdictOf(audit.Verify(f, trustOf(l.Report)))
		f.Close()
	}
	l.Report = j.redactor.Report(l.Report)
	r.writeForms(p, l)
	if e := l.Report.Error; e != nil {
		e.Message, e.Hint = j.plain(e.Message), j.plain(e.Hint)
		return l, stopError(e)
	}
	return l, nil
}

// writeForms leaves the report in other forms, for people and other tools.
func (r Run) writeForms(p prepared, l PlanRun) {
	web, _, err := timeline.Web(filepath.Join(l.dir, auditName), l.Report)
	if err == nil {
		err = report.Files{HTML: filepath.Join(l.dir, pageName), SARIF: filepath.Join(l.dir, sarifName),
			JUnit: filepath.Join(l.dir, junitName)}.Write(l.Report,
			report.Forms{Web: web, Sources: p.workspace.sources})
	}
	if err != nil {
		r.Job.console.PrintWarning("the report is only there as JSON: " + r.Job.plain(err.Error()))
	}
}

// print writes to the job's log what each command printed, folded.
func (r Run) print(l PlanRun) {
	console := r.Job.console
	for _, rec := range l.Report.Records {
		if rec.Result == nil {
			continue
		}
		console.BeginGroup(fmt.Sprintf("%s: %s", rec.Proposal.ID, ending(rec.Result)))
		console.PrintUntrusted(strings.TrimRight("$ "+rec.Analysis.Canonical, "\n"))
		for _, s := range []proposal.Stream{rec.Result.Stdout, rec.Result.Stderr} {
			if s.Bytes > 0 {
				console.PrintUntrusted(excerpt(s))
			}
		}
		console.EndGroup()
	}
	console.PrintParagraph(report.Text(l.Report))
}

// ending returns how a command ended, in a few words.
func ending(r *proposal.Result) string {
	switch {
	case r.Status == proposal.Exited:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	case r.Signal != "":
		return r.Signal
	}
	return r.Status.String()
}

func excerpt(s proposal.Stream) string {
	if !s.Truncated {
		return string(s.Head) + string(s.Tail)
	}
	return fmt.Sprintf("%s\n… %d bytes omitted …\n%s", s.Head, s.Bytes-int64(len(s.Head)+len(s.Tail)), s.Tail)
}
