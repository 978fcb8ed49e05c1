// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Find asks a model for findings about a pull request's change. The change is data: it is read
// from the API, and nothing of the pull request is checked out or runs. No sandbox is started.
type Find struct {
	Job  *Job
	Task Task
	Base *Base
}

// findTimeout is how long a Find may take if the input timeout is empty.
const findTimeout = 15 * time.Minute

// modelLogs is the directory of the artifact with the log of what was asked.
const modelLogs = "model"

// Do asks the model. An Outcome has Found, or a Review that says why nothing was reviewed, which
// the job that reports shows. The latter is an error only if fumehood itself failed.
func (f Find) Do(ctx context.Context) (Outcome, error) {
	o := Outcome{Request: f.Task.Request}
	found, skipped, err := f.find(ctx)
	if o.Skipped = skipped; skipped != "" {
		return o, nil
	}
	if err == nil && found.Reason == "" {
		o.Found = &found
		return o, nil
	}
	reason := error(&proposal.StopError{Code: "review.not-found", Message: found.Reason})
	if err != nil {
		reason = err
	}
	d := f.Job.notReviewed(f.Task.Request, reason)
	o.Review = &d
	return o, errors.Join(err, Verify(f).save(d))
}

// find prepares everything that can be refused, and then asks.
func (f Find) find(ctx context.Context) (found review.FoundFindings, skipped string, err error) {
	r, err := f.Job.modelReviewer(f.Task.Request, 1)
	if err != nil {
		return found, "", err
	}
	change, skipped, err := f.change(ctx)
	switch {
	case skipped != "":
		return found, skipped, nil
	case github.KindOf(err) == github.TooLarge:
		return review.FoundFindings{Reason: "the change is too large: GitHub does not generate its diff, or it has more than 8 MiB"}, "", nil
	case err != nil:
		return found, "", err
	}
	f.Job.console.PrintProgress("asking %s %s about %d bytes of the change", r.Name, r.Model, len(change.Diff))
	found, err = r.Find(ctx, change)
	if ctx.Err() != nil {
		err = &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled", Err: ctx.Err()}
	}
	return found, "", err
}

// change reads the guidance of the default branch, and the diff of the request's commit: the head
// is the same before and after.
func (f Find) change(ctx context.Context) (c review.Change, skipped string, err error) {
	j, q := f.Job, f.Task.Request
	if skipped, err = Run(f).checkPullRequest(ctx); err != nil || skipped != "" {
		return c, skipped, err
	}
	configured, err := f.Base.configuration(ctx)
	if err != nil {
		return c, "", err
	}
	c = review.Change{Base: q.Base, Head: q.Head, Guidance: review.GuidanceOf(configured.config),
		Dir: filepath.Join(j.artifactDir(), modelLogs)}
	if c.Diff, err = j.gh.Diff(ctx, q.PR); err != nil {
		return c, "", err
	}
	f.Task.fresh = false
	skipped, err = Run(f).checkPullRequest(ctx)
	return c, skipped, err
}

// modelReviewer returns the reviewer that the inputs and the environment describe. From then on,
// its key and the token are redacted from everything that this job writes.
func (j *Job) modelReviewer(q Request, rounds int) (r review.Reviewer, err error) {
	a := review.ReviewerOptions{Provider: j.in.Provider, Model: j.in.Model, Getenv: j.options.Getenv, Rounds: rounds,
		MaxOutput: review.DefaultMaxOutput, Timeout: cmp.Or(j.in.Timeout, findTimeout),
		Review: review.LimitText{USD: j.in.MaxUSD, Tokens: noneIfZero(j.in.MaxTokens)},
		PR:     review.LimitText{Tokens: -1}, Day: review.LimitText{Tokens: -1},
		Subject: fmt.Sprintf("%s#%d", j.runner.Repository, q.PR)}
	r, masks, err := a.PrepareReviewer()
	if err != nil {
		return r, j.describeModel(err)
	}
	j.redactor, err = redact.New(redact.Options{Masks: slices.Concat(j.masks(), masks, j.tokenMask())})
	r.Redactor = j.redactor
	return r, err
}

func noneIfZero(n int) int64 {
	if n == 0 {
		return -1
	}
	return int64(n)
}

// describeModel gives an error about a model the hint for a workflow.
func (j *Job) describeModel(err error) error {
	f := proposal.FailureOf(err)
	hints := map[string]string{
		"model.price":   "give a limit in tokens:\n\nwith:\n  max-tokens: 200000",
		"model.key":     "give the step the key in env, from a secret. A secret that does not exist, or is not available to this event, is empty:\n\nenv:\n  ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}",
		"model.address": "remove the provider's variable _BASE_URL, or use an https address without user and query; http only for a loopback address",
	}
	if hint, known := hints[f.Code]; known {
		return &proposal.StopError{Code: f.Code, Message: f.Message, Hint: hint, Err: err}
	}
	return err
}

// findOutputs are the outputs of a job that asked a model, and the reason of any review that was
// not made.
func (j *Job) findOutputs(o Outcome) [][2]string {
	if o.Review != nil && !o.Review.Reviewed {
		return [][2]string{{"reason", o.Review.Reason}}
	}
	if o.Found == nil {
		return nil
	}
	values := [][2]string{{"findings", string(o.Found.Findings)}}
	if _, err := os.Stat(filepath.Join(j.artifactDir(), modelLogs)); err != nil || j.in.Artifact == "" {
		return values
	}
	return append(values, j.uploadOutputs(attempted("find-of-"+j.ownArtifact(), j.runner.Attempt))...)
}
