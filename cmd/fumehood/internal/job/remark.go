// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/post"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// showReview posts the Outcome's review, if it has one, on the lines of the pull request and in its
// comment, and writes it to the step summary.
func (r Report) showReview(ctx context.Context) (err error) {
	if r.Outcome.Review == nil {
		return nil
	}
	d, in, q := *r.Outcome.Review, r.Job.in, r.Outcome.Request
	var shown review.SummaryOptions
	var url string
	if !r.SummaryOnly && !in.DryRun && in.Comment && q.PR != 0 {
		url, err = r.postReview(ctx, d, &shown)
	}
	if len(r.Outcome.Runs) == 0 && q.Comment != 0 && !r.SummaryOnly {
		r.announceEnd(ctx, url)
	}
	r.Job.console.PrintUntrusted(d.RenderText())
	shown.Units = action.MaxSummary / 4 // a unit has at most three bytes
	return errors.Join(err, r.Job.summary.Write(d.RenderSummary(shown)))
}

// postReview posts the lines first, so that the summary can say what became of them.
func (r Report) postReview(
	ctx context.Context, d review.Document, shown *review.SummaryOptions,
) (url string, err error) {
	locked, err := r.postLines(ctx, d, shown)
	if locked {
		return "", nil
	}
	c := conversation{r.Job, r.Outcome.Request.PR}
	k, keeperErr := c.keeper(ctx)
	if keeperErr != nil {
		return "", errors.Join(err, keeperErr)
	}
	o := k.ReplaceResults(ctx, r.reviewed(d, *shown))
	_, summaryErr := c.applyOutcome(o)
	return o.URL, errors.Join(err, summaryErr)
}

// reviewed is the section of the comment that shows the review d.
func (r Report) reviewed(d review.Document, shown review.SummaryOptions) comment.Results {
	j, q := r.Job, r.Outcome.Request
	source := j.source(q)
	source.Review = true
	outcome := reviewOutcome(d)
	conclusion, _ := action.ConcludeJob(outcome, j.in.FailOn)
	shown.Untitled = true
	mark, title := j.reviewMark(d), ": "+d.Title()
	if len(shown.Open) > 0 {
		title += fmt.Sprintf(", %d of earlier reviews still open", len(shown.Open))
		mark = strings.Replace(mark, "✅", "⚠️", 1)
	}
	return comment.Results{
		Section: comment.Section{Source: source, Mark: mark, Title: title,
			Result: comment.Result{Stamp: j.stamp(d.Head), Conclusion: conclusion, Totals: outcome.Totals}},
		Answered: j.answers(q), Done: d.Reviewed,
		Body: func(room comment.Room) string {
			shown.Units = min(room.Units, maxReview)
			return d.RenderSummary(shown)
		},
	}
}

// maxReview is how long a review's section is at most, in units.
const maxReview = 8000

// reviewMark is the mark of a review's section: none for one that the pull request can have made up.
func (j *Job) reviewMark(d review.Document) string {
	switch {
	case j.event.Run != nil:
		return ""
	case d.CountVerdict(review.Verified) > 0:
		return "❌"
	case !d.Reviewed:
		return "➖"
	}
	return "✅"
}

// postLines posts comments on lines, unless the pull request can change the workflow that verified
// the findings: then its author can have made them up.
func (r Report) postLines(
	ctx context.Context, d review.Document, shown *review.SummaryOptions,
) (locked bool, err error) {
	j := r.Job
	if j.event.Run != nil {
		shown.Notes = append(shown.Notes,
			"Self-reported: the pull request can change the workflow that verified these findings, so that none is posted on its lines.")
		return false, nil
	}
	author, err := j.account(ctx)
	if err != nil {
		return false, err
	}
	o := post.Post(ctx, post.Options{Client: j.gh, Author: author, PR: r.Outcome.Request.PR, Settle: j.options.Settle},
		d)
	shown.Comments, shown.Open, shown.Notes = o.Comments, o.Open, append(shown.Notes, o.Notes...)
	j.console.PrintProgress("review: %d comments created, %d updated, %d threads resolved or unresolved", o.Created,
		o.Updated, o.Threads)
	switch {
	case o.Failure == nil:
		return false, nil
	case o.Failure.Code == "github.locked":
		j.console.PrintWarning("the pull request's conversation is locked: nothing was posted")
		return true, nil
	}
	return false, &proposal.StopError{Code: o.Failure.Code, Message: o.Failure.Message, Hint: o.Failure.Hint}
}

// postLints posts what linters report on lines that the pull request changes, if the configuration
// requests it. Like findings, nothing is posted if the pull request can change the workflow that ran.
func (r Report) postLints(ctx context.Context) error {
	j, q := r.Job, r.Outcome.Request
	if r.Outcome.comment.Lines != config.LinesLinters || !j.in.Comment || q.PR == 0 || j.event.Run != nil {
		return nil
	}
	list := reports(r.Outcome.Runs)
	if len(list) == 0 {
		return nil
	}
	author, err := j.account(ctx)
	if err != nil {
		return err
	}
	source := j.source(q)
	d := review.LintsOf(strings.Join([]string{source.Workflow, source.Job, source.Name}, "\x00"), list[0].Run.HeadSHA,
		list[0].Run.BaseSHA, list, review.PatchDiff(r.files.patches))
	o := post.Post(ctx, post.Options{Client: j.gh, Author: author, PR: q.PR, Settle: j.options.Settle}, d)
	for _, note := range o.Notes {
		j.console.PrintProgress("linters: %s", note)
	}
	j.console.PrintProgress("linters: %d comments created, %d updated, %d threads resolved or unresolved", o.Created,
		o.Updated, o.Threads)
	if o.Failure == nil || o.Failure.Code == "github.locked" {
		return nil
	}
	return &proposal.StopError{Code: o.Failure.Code, Message: o.Failure.Message, Hint: o.Failure.Hint}
}
