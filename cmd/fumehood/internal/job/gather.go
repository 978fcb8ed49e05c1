// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Gather reads the artifacts of the jobs that ran commands. The pull request may control
// those jobs: paths, pull requests and commits named in an artifact are not trusted.
type Gather struct {
	Job  *Job
	Task Task
	Base *Base
}

// Do returns the runs. A refused one has a report with the reason. An error means that this
// job failed; it comes with the runs read so far.
func (g Gather) Do(ctx context.Context) (Outcome, error) {
	o := Outcome{Request: g.Task.Request}
	var err error
	if o.Review, err = g.Job.gatherReview(ctx, g.Task.Request); err != nil {
		return o, err
	}
	artifacts, err := g.Job.artifactsOf(ctx, g.Job.stamp(""))
	switch {
	case err != nil && refused(err):
		o.Runs = []PlanRun{g.substitute(PlanRun{}, err)}
		return o, nil
	case err != nil:
		return o, err
	case len(artifacts) == 0 && o.Review != nil:
		return o, nil
	case len(artifacts) == 0:
		o.Runs = []PlanRun{g.nothingReported()}
		return o, nil
	}
	engine, err := g.Base.compileEngine(ctx, g.Task)
	if err != nil {
		return o, err
	}
	o.Runs, err = g.readAll(ctx, engine, artifacts)
	o.Runs = append(o.Runs, g.missingParts(artifacts)...)
	return o, err
}

func (g Gather) readAll(ctx context.Context, engine *policy.Engine, artifacts []github.Artifact) ([]PlanRun, error) {
	r := reviewer{job: g.Job, base: g.Base, engine: engine, fork: g.Task.Fork, request: g.Task.Request,
		run: g.Job.runID(), labels: g.Job.labelArtifacts(artifacts)}
	var runs []PlanRun
	for _, a := range artifacts {
		found, err := r.read(ctx, a)
		if err == nil && len(runs)+len(found) > maxPlans {
			err = tooMany(len(runs)+len(found), "plans")
		}
		if err != nil && !refused(err) {
			return runs, err
		}
		if err != nil {
			found = []PlanRun{g.substitute(r.newPlanRun(a, ""), err)}
		}
		for i := range found {
			found[i].Report = g.Job.redactor.Report(found[i].Report)
		}
		runs = append(runs, found...)
	}
	return runs, nil
}

// substitute returns l with a report on why its artifact was refused.
func (g Gather) substitute(l PlanRun, err error) PlanRun {
	l.Report, l.substitute = g.Job.stoppedReport(g.Task.Request, err), true
	return l
}

// nothingReported is the run that left no report: usually it was cancelled, or failed
// before fumehood's step.
func (g Gather) nothingReported() PlanRun {
	run := g.Job.event.Run
	var err error = &proposal.StopError{Code: "report.missing", Message: "the run has no report", Hint: g.missingHint()}
	if failed := g.Job.reviewerFailed(); failed != nil && g.Task.Request.Command == reviewCommand {
		err = failed
	}
	if run != nil && run.Conclusion == "cancelled" {
		err = &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled"}
	}
	return PlanRun{Report: g.Job.stoppedReport(g.Task.Request, err), local: true}
}

func (g Gather) missingHint() string {
	if g.Job.event.Run == nil && g.Task.Request.Command != reviewCommand {
		return "phase report shows the results of earlier jobs of the same run: give this job needs: and those jobs phase: run. If there is only one job, remove phase"
	}
	return "check the run's log: a step before fumehood's may have failed, or its input artifact may be empty or differ from this job's"
}

// refused reports whether err is about an artifact, which is then reported, and not about
// this job's own work.
func refused(err error) bool { return strings.HasPrefix(proposal.FailureOf(err).Code, "report.") }

// artifactsOf lists the artifacts of a run that have our names: see uploaded.
func (j *Job) artifactsOf(ctx context.Context, s comment.Stamp) ([]github.Artifact, error) {
	newest, err := j.uploaded(ctx, s)
	if err != nil {
		return nil, err
	}
	var list []github.Artifact
	for name, a := range newest {
		if j.in.Artifact != "" && (name == j.in.Artifact || strings.HasPrefix(name, j.in.Artifact+"-")) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b github.Artifact) int { return strings.Compare(a.Name, b.Name) })
	if len(list) > maxPlans {
		return nil, tooMany(len(list), "artifacts")
	}
	return list, nil
}

func tooMany(n int, what string) error {
	return &proposal.StopError{Code: "report.too-many",
		Message: fmt.Sprintf("the run has %d %s, the maximum is %d", n, what, maxPlans),
		Hint:    "use fewer plans, or combine several in one"}
}
