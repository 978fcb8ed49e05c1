// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/review"
)

// maxTries is how often a review is sent if it is unknown whether GitHub has created it.
const maxTries = 4

// createReview posts the verified findings that have no comment, in one review.
func (v *reviewUpdate) createReview(ctx context.Context) error {
	list, filtered := v.unpostedFindings(), false
	for try := 1; len(list) > 0; try++ {
		err := v.sendReview(ctx, list)
		switch kind := github.KindOf(err); {
		case err == nil:
			v.out.Created += len(list)
			return v.rereadWhenSettled(ctx)
		case kind == github.Invalid && !filtered:
			filtered = true
			if list, err = v.keepInHunks(ctx, list, err); err != nil {
				return err
			}
		case kind == github.Uncertain && try < maxTries:
			if err := v.rereadWhenSettled(ctx); err != nil {
				return err
			}
			missing := v.dropCommented(list)
			v.out.Created += len(list) - len(missing)
			list = missing
		default:
			v.addNote("The comments on lines could not be posted: the findings are only here.")
			return err
		}
	}
	return nil
}

// unpostedFindings returns the verified findings to post, the most severe first: not those on lines that
// were reviewed before.
func (v *reviewUpdate) unpostedFindings() []review.Result {
	var list []review.Result
	for _, r := range v.dropCommented(v.doc.PlacedFindings()) {
		if !r.Earlier && !slices.ContainsFunc(list,
			func(x review.Result) bool { return x.ClaimKey() == r.ClaimKey() }) {
			list = append(list, r)
		}
	}
	limit, what := MaxComments, "findings"
	if v.doc.Lints != "" {
		limit, what = max(0, min(MaxLints, MaxAllLints-len(v.ours)-len(v.others))), "reports of linters"
	}
	if more := len(list) - limit; more > 0 {
		v.addNote("%d more %s have no comment of their own: a review has at most %d.", more, what, limit)
		list = list[:limit]
	}
	return list
}

// dropCommented returns the results that have no comment.
func (v *reviewUpdate) dropCommented(list []review.Result) (kept []review.Result) {
	for _, r := range list {
		if key := r.ClaimKey(); len(v.ours[key]) == 0 && !v.others[key] {
			kept = append(kept, r)
		}
	}
	return kept
}

func (v *reviewUpdate) sendReview(ctx context.Context, list []review.Result) error {
	summary := fmt.Sprintf("fumehood verified %s on `%.12s`. The summary is in its comment on this pull request.",
		countFindings(len(list)), v.doc.Head)
	if v.doc.Lints != "" {
		summary = fmt.Sprintf("Commands that fumehood ran on `%.12s` report something about lines of this pull request (%d comments).", v.doc.Head, len(list))
	}
	r := github.NewReview{Commit: v.doc.Head, Body: summary}
	for _, x := range list {
		p := x.Position
		r.Comments = append(r.Comments,
			github.NewReviewComment{Path: p.Path, Line: p.Line, StartLine: p.StartLine, Side: p.Side,
				Body: formatComment(v.doc, x, false, "")})
	}
	_, err := v.Client.CreateReview(ctx, v.PR, r)
	return err
}

func countFindings(n int) string {
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}

// keepInHunks returns the results that are in the hunks that GitHub itself shows, after it refused
// all of them with err. If those are all, the reason is another one, and it returns err.
func (v *reviewUpdate) keepInHunks(
	ctx context.Context, list []review.Result, refused error,
) (kept []review.Result, err error) {
	hunks, err := v.Client.Hunks(ctx, v.PR)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if slices.ContainsFunc(hunks[r.Position.Path],
			func(h github.Hunk) bool { return r.Position.IsWithin(review.Hunk(h)) }) {
			kept = append(kept, r)
		}
	}
	if len(kept) == len(list) {
		v.addNote("GitHub refused the comments on lines: the findings are only here.")
		return nil, refused
	}
	v.addNote("GitHub accepts no comment on the lines of %s: see below.", countFindings(len(list)-len(kept)))
	return kept, nil
}
