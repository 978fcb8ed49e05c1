// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Verify runs the reproducers of the findings that the workflow names, or that a model reports,
// on the pull request's code and on the code before it.
type Verify struct {
	Job  *Job
	Task Task
	Base *Base
}

// The files of a review's artifact. Only the document is read again.
const (
	documentName = "review.json"
	logsName     = "logs"
)

// reviewArtifact names the artifact of this job's review, without the attempt. It is not one of those
// with the reports of plans.
func (j *Job) reviewArtifact() string { return reviewPrefix + j.ownArtifact() }

const reviewPrefix = "review-of-"

// Do verifies the findings. A review that could not be made has a Document that says why.
func (v Verify) Do(ctx context.Context) (Outcome, error) {
	o := Outcome{Request: v.Task.Request}
	run := Run(v)
	var err error
	if o.Skipped, err = run.checkPullRequest(ctx); o.Skipped != "" {
		return o, nil
	}
	var d review.Document
	if err == nil {
		d, err = v.verify(ctx, run)
	}
	if err != nil {
		d = v.Job.notReviewed(v.Task.Request, err)
	}
	o.Review = &d
	return o, errors.Join(err, v.save(d))
}

// notReviewed is the document of a review that could not be made.
func (j *Job) notReviewed(q Request, err error) review.Document {
	return review.Document{Schema: review.Schema, Base: q.Base, Head: q.Head, Reason: j.failure(err).Message,
		Results: []review.Result{}, Runs: []review.Run{}}
}

// verify runs fumehood review as root, in a process without the token, and reads what it left.
func (v Verify) verify(ctx context.Context, run Run) (d review.Document, err error) {
	j := v.Job
	if err := j.reviewerFailed(); err != nil {
		return d, err
	}
	s, err := j.reviewSource()
	if err != nil {
		return d, err
	}
	since := v.reviewedBefore(ctx)
	spec, err := v.prepare(ctx, run, s)
	if err != nil {
		return d, err
	}
	j.console.BeginGroup("fumehood: " + s.name)
	code, err := j.runChild(ctx, "review", spec, s.serve)
	j.console.EndGroup()
	if err != nil {
		return d, err
	}
	if ctx.Err() != nil {
		return d, &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled", Err: ctx.Err()}
	}
	if d, err = v.readBack(code); err == nil && since != "" {
		v.markEarlier(ctx, &d, since)
	}
	return d, err
}

// reviewedBefore returns the commit of the last complete review, which the comment's state has,
// and fetches it. Without it, everything is new: that is no reason to stop.
func (v Verify) reviewedBefore(ctx context.Context) string {
	k, err := conversation{v.Job, v.Task.Request.PR}.keeper(ctx)
	if err != nil {
		return ""
	}
	s, err := k.Read(ctx)
	source := v.Job.source(v.Task.Request)
	source.Review = true
	if err != nil || s.Review == nil || s.Review.Source != source || !s.Review.Done ||
		s.Review.Head == v.Task.Request.Head {
		return ""
	}
	if err := v.Base.fetch(ctx, s.Review.Head); err != nil {
		v.Job.console.PrintNotice("the commit that was reviewed before cannot be fetched: all lines are reviewed as new")
		return ""
	}
	return s.Review.Head
}

// markEarlier marks what is on lines that have not changed since, or says that it cannot.
func (v Verify) markEarlier(ctx context.Context, d *review.Document, since string) {
	diff, err := v.compare(ctx, since, d.Head)
	if err != nil {
		v.Job.console.PrintNotice("the commit that was reviewed before cannot be compared: all lines are reviewed as new")
		return
	}
	d.MarkEarlier(since, diff)
}

// compare compares commits in the repository of the workspace.
func (v Verify) compare(ctx context.Context, from, to string) (*review.Diff, error) {
	local, err := checkout.OpenLocal(ctx, filepath.Join(v.Job.dir, "workspace"))
	if err != nil {
		return nil, err
	}
	defer local.Close()
	data, err := local.Diff(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return review.ParseDiff(data)
}

// A reviewSource is where the findings of a review come from.
type reviewSource struct {
	name  string         // for people
	spec  runspec.Review // without the commits
	serve func(ctx context.Context, in io.Reader, out io.Writer)
}

// reviewSource reads the inputs, so that a mistake in them is reported before anything is made for
// them.
func (j *Job) reviewSource() (reviewSource, error) {
	if j.in.Provider != "" {
		return j.modelSource()
	}
	data, name, err := j.readInput("findings", "findings.unreadable", j.in.Findings)
	if err != nil {
		return reviewSource{}, err
	}
	if _, problems := plan.DecodeFindings(data, name); len(problems) > 0 {
		return reviewSource{}, &proposal.StopError{Code: "review.invalid",
			Message: "invalid findings: " + firstProblem(name, problems),
			Hint:    "fix the findings at this position, or give the reviewer the schema testdata/schema/fumehood.findings.v1.json for its answer"}
	}
	file := filepath.Join(j.dir, "plan")
	return reviewSource{name: "verifying " + name, spec: runspec.Review{Findings: file}},
		os.WriteFile(file, data, 0o600)
}

// prepare fetches the commits, and returns what the child is to do.
func (v Verify) prepare(ctx context.Context, run Run, source reviewSource) (s runspec.Spec, err error) {
	j, q := v.Job, v.Task.Request
	j.console.BeginGroup("fumehood: commit " + q.Head[:12])
	defer j.console.EndGroup()
	if err := v.Base.fetchPolicy(ctx, q.Head, q.Base); err != nil {
		return s, err
	}
	if _, err := v.Base.policies(ctx); err != nil {
		return s, err
	}
	w, err := run.writeCommit(ctx)
	if err != nil {
		return s, err
	}
	if err := os.MkdirAll(j.artifactDir(), 0o700); err != nil {
		return s, err
	}
	if s, err = run.describe(ctx, w, nil); err != nil {
		return s, err
	}
	s.Artifacts, s.Report = filepath.Join(j.artifactDir(), logsName), filepath.Join(j.artifactDir(), documentName)
	s.Review = source.spec
	s.Review.Base, s.Review.Head = q.Base, q.Head
	return s, nil
}

// readBack reads the document that the child left, which must be about the commit.
func (v Verify) readBack(code int) (d review.Document, err error) {
	data, err := os.ReadFile(filepath.Join(v.Job.artifactDir(), documentName))
	if err != nil {
		return d, &proposal.StopError{Code: "review.lost",
			Message: fmt.Sprintf("the review ended with exit code %d and no result", code), Hint: "see the job's log",
			Err: err}
	}
	if d, err = review.ReadOwn(data); err != nil {
		return d, err
	}
	if d.Head != v.Task.Request.Head {
		return d, &proposal.StopError{Code: "review.head", Message: "the review is about another commit"}
	}
	return d.WithRedactedTexts(v.Job.redactor.Text), nil
}

// save writes the document for the job that reports.
func (v Verify) save(d review.Document) error {
	data, err := d.EncodeJSON()
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(v.Job.artifactDir(), 0o700),
		os.WriteFile(filepath.Join(v.Job.artifactDir(), documentName), data, 0o600))
}

// gatherReview reads the review of a run, or returns nil if the run has none. The artifact is
// untrusted: what cannot be read, or is about another commit, is a Document that says so.
func (j *Job) gatherReview(ctx context.Context, q Request) (*review.Document, error) {
	if j.in.Artifact == "" {
		return nil, nil
	}
	all, err := j.uploaded(ctx, j.stamp(""))
	if err != nil {
		return nil, err
	}
	var reviews []string
	for name := range all {
		if of, is := strings.CutPrefix(name, reviewPrefix); is &&
			(of == j.in.Artifact || strings.HasPrefix(of, j.in.Artifact+"-")) {
			reviews = append(reviews, name)
		}
	}
	if len(reviews) == 0 {
		return nil, nil
	}
	d, err := j.readReview(ctx, all[reviews[0]], q)
	if len(reviews) > 1 {
		err = &proposal.StopError{Code: "review.several", Message: fmt.Sprintf("the run has %d reviews", len(reviews)),
			Hint: "give each job with phase: review, and the job that reports it, an input artifact of its own; none begins with another"}
	}
	if err != nil && !strings.HasPrefix(proposal.FailureOf(err).Code, "report.") &&
		!strings.HasPrefix(proposal.FailureOf(err).Code, "review.") {
		return nil, err
	}
	if err != nil {
		d = j.notReviewed(q, err)
	}
	return &d, nil
}

func (j *Job) readReview(ctx context.Context, a github.Artifact, q Request) (d review.Document, err error) {
	bundles, err := j.unpack(ctx, a)
	if err != nil {
		return d, err
	}
	if d, err = review.Read(bundles[""][documentName]); err != nil {
		return d, err
	}
	if d.Head != q.Head {
		return d, &proposal.StopError{Code: "review.head", Message: "the review is about another commit than the run"}
	}
	return d.WithRedactedTexts(j.redactor.Text), nil
}

// reviewOutcome is what a review amounts to: a verified finding is a failure, and no review is one
// that is not the pull request's.
func reviewOutcome(d review.Document) (o action.Outcome) {
	o.Totals.Failed = d.CountVerdict(review.Verified)
	if !d.Reviewed {
		o.Totals.CouldNotRun = 1
	}
	return o
}

// sum is what runs and a review amount to.
func (o Outcome) sum() (sum action.Outcome) {
	if len(o.Runs) > 0 {
		sum = sumUp(o.Runs)
	}
	if o.Review != nil {
		sum.Totals = sum.Totals.Add(reviewOutcome(*o.Review).Totals)
	}
	return sum
}

// reviewOutputs are the outputs of a job that verified or reports findings.
func (j *Job) reviewOutputs(d *review.Document) [][2]string {
	if d == nil {
		return nil
	}
	var values [][2]string
	if d.Reviewed {
		values = append(values, [2]string{"verified", strconv.Itoa(d.CountVerdict(review.Verified))})
	}
	file := filepath.Join(j.artifactDir(), documentName)
	if !isThere(file) {
		return values
	}
	values = append(values, [2]string{"review", file})
	if j.in.Artifact == "" {
		return values
	}
	return append(values, j.uploadOutputs(attempted(j.reviewArtifact(), j.runner.Attempt))...)
}
