// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/keep"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
	"github.com/fumehood/fumehood/pkg/report/timeline"
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
	l := PlanRun{Name: q.Plans[i].Name, local: true, document: []byte(q.Plans[i].Document), dir: filepath.Join(r.Job.artifactDir(), n), files: filepath.Join(r.Job.dir, "files", n)}
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
	args, err := r.childArgs(ctx, p, l, planned)
	if err != nil {
		return r.stopped(p, l, err)
	}
	input, err := json.Marshal(j.masks()) // on a pipe, which no other process reads
	if err != nil {
		return l, err
	}
	j.console.BeginGroup(fmt.Sprintf("fumehood: running %d proposals%s", len(l.plan.Proposals), ofPlan(planned.Name)))
	code, err := child{program: j.options.Program, args: args, input: input, cache: j.options.Getenv("FUMEHOOD_CACHE"),
		line: func(s string) { j.console.PrintUntrusted(j.plain(s)) }}.run(ctx)
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

// childArgs writes the plan and what it is about to files, and names them.
func (r Run) childArgs(ctx context.Context, p prepared, l PlanRun, planned Planned) ([]string, error) {
	j := r.Job
	if err := errors.Join(os.MkdirAll(l.dir, 0o700), os.MkdirAll(filepath.Dir(l.files), 0o700)); err != nil {
		return nil, err
	}
	policies, origins, err := r.Base.flags(ctx)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(gate.About{Repository: j.runner.Repository, PR: p.request.PR, HeadSHA: p.request.Head, BaseSHA: p.request.Base, MergeBase: p.workspace.mergeBase, TreeLeft: p.workspace.treeLeft,
		Left: p.workspace.left, Unenforced: p.workspace.doubts, Ceiling: j.in.Limits, Approval: planned.Approval, Fork: r.Task.Fork, Cwd: j.cwd(), Policies: origins})
	if err != nil {
		return nil, err
	}
	planFile, aboutFile := filepath.Join(j.dir, "plan"), filepath.Join(j.dir, "about.json")
	if err := errors.Join(l.keepPlan(j.redactor), os.WriteFile(planFile, l.document, 0o600), os.WriteFile(aboutFile, data, 0o600)); err != nil {
		return nil, err
	}
	configured, err := r.Base.configuration(ctx)
	if err != nil {
		return nil, err
	}
	found, err := gate.FindSetup(configured.config, p.workspace.dir, j.options.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{"--plan", planFile, "--about", aboutFile, "--workspace", p.workspace.dir}, configured.flags(j.in), r.flags(l))
	caches, err := r.cacheFlags(configured.config)
	if err != nil {
		return nil, err
	}
	args = append(args, caches...)
	requested := found.Registries()
	if j.in.Network == action.NetworkPolicy && len(policies) > 0 {
		requested = append(requested, registriesOf(l.plan)...)
	}
	if len(requested) > 0 {
		registries, err := r.writeRegistries(ctx, requested)
		if err != nil {
			return nil, err
		}
		args = append(args, "--registries", registries)
	}
	proxies, err := j.proxyFlags()
	return slices.Concat(args, proxies, policies), err
}

// flags are the flags of fumehood run that come from the inputs, and where it writes.
func (r Run) flags(l PlanRun) []string {
	flags := append(r.Job.childFlags(l.files, filepath.Join(l.dir, reportName)), "--audit", filepath.Join(l.dir, auditName))
	if !r.Job.in.CompareBase {
		flags = append(flags, "--compare-base", "false")
	}
	return flags
}

// childFlags are the flags of fumehood run and of fumehood review that come from the inputs, and
// where they write.
func (j *Job) childFlags(artifacts, report string) []string {
	flags := []string{
		"--tools", j.options.Getenv("PATH"), "--artifacts", artifacts, "--report", report,
		"--owner", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--json", "--lifeline", "--mask-stdin",
	}
	if j.runner.Environment == "github-hosted" {
		flags = append(flags, "--cache", "false") // the machine is thrown away after the job
	}
	if j.in.Timeout > 0 {
		flags = append(flags, "--timeout", j.in.Timeout.String())
	}
	if j.in.Mode == action.ModeObserve {
		flags = append(flags, "--observe")
	}
	return flags
}

// proxyFlags are the flags for the proxies of this job's environment, which the child's lacks.
func (j *Job) proxyFlags() ([]string, error) {
	path := filepath.Join(j.dir, "proxies.json")
	if any, err := process.WriteProxies(path, j.options.Getenv); !any || err != nil {
		return nil, err
	}
	return []string{"--proxies", path}, nil
}

// A cacheInput is an input that names a directory of a cache, relative to Runner.Temp.
type cacheInput struct {
	name, dir  string
	flag       string
	configured bool
	setting    string // that must be configured
}

// cacheFlags returns the flags for layers and results in directories that were restored.
func (r Run) cacheFlags(c config.Config) ([]string, error) {
	in := r.Job.in
	layers, err := r.cacheFlag("input.layers-cache", cacheInput{"layers-cache", in.LayersCache, "--layers", c.Layers, "layers: true"})
	if err != nil {
		return nil, err
	}
	results, err := r.cacheFlag("input.results-cache", cacheInput{"results-cache", in.ResultsCache, "--results", c.Results == "read", "results: read"})
	return append(layers, results...), err
}

// cacheFlag returns the flags for an input. What is not in the configuration is not used. Only a
// job that keep.Allowed leaves its own there.
func (r Run) cacheFlag(code string, i cacheInput) ([]string, error) {
	j := r.Job
	switch {
	case i.dir == "":
		return nil, nil
	case !i.configured:
		j.console.PrintNotice("input " + i.name + " has no effect: " + config.Path + " of the default branch does not have " + i.setting)
		return nil, nil
	}
	dir, mode := filepath.Join(j.runner.Temp, i.dir), "read"
	if keep.IsAllowed(j.options.Getenv, os.ReadFile) {
		mode = "write"
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, &proposal.StopError{Code: code, Message: "cannot make the directory of input " + i.name, Hint: "name a directory of actions/cache/save in RUNNER_TEMP", Err: err}
		}
	}
	return []string{i.flag, mode, i.flag + "-exchange", dir}, nil
}

// registriesOf returns the registries that a plan requests.
func registriesOf(plan proposal.Plan) (names []string) {
	for _, p := range plan.Proposals {
		names = append(names, registry.GrantedNames(p.Network)...)
	}
	return names
}

// writeRegistries writes the registries from which this job's tools download packages. The
// child cannot find them, because its HOME is root's.
func (r Run) writeRegistries(ctx context.Context, requested []string) (string, error) {
	found, err := registry.Discover(ctx, requested)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(found)
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.Job.dir, "registries.json")
	return path, os.WriteFile(path, data, 0o600)
}

// readBack reads the report and the log that a child left, and verifies the log.
func (r Run) readBack(p prepared, l PlanRun, code int) (PlanRun, error) {
	j := r.Job
	data, err := os.ReadFile(filepath.Join(l.dir, reportName))
	if err != nil {
		return l, errors.Join(&proposal.StopError{Code: "run.lost", Message: fmt.Sprintf("the run ended with exit code %d and no report", code), Err: err}, l.save())
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
		err = report.Files{HTML: filepath.Join(l.dir, pageName), SARIF: filepath.Join(l.dir, sarifName), JUnit: filepath.Join(l.dir, junitName)}.Write(l.Report, report.Forms{Web: web, Sources: p.workspace.sources})
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
