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

// create posts the verified findings that have no comment, in one review.
func (v *visit) create(ctx context.Context) error {
	list, filtered := v.unposted(), false
	for try := 1; len(list) > 0; try++ {
		err := v.send(ctx, list)
		switch kind := github.KindOf(err); {
		case err == nil:
			v.out.Created += len(list)
			return v.settle(ctx)
		case kind == github.Invalid && !filtered:
			filtered = true
			if list, err = v.accepted(ctx, list, err); err != nil {
				return err
			}
		case kind == github.Uncertain && try < maxTries:
			if err := v.settle(ctx); err != nil {
				return err
			}
			missing := v.without(list)
			v.out.Created += len(list) - len(missing)
			list = missing
		default:
			v.note("The comments on lines could not be posted: the findings are only here.")
			return err
		}
	}
	return nil
}

// unposted returns the verified findings to post, the most severe first: not those on lines that
// were reviewed before.
func (v *visit) unposted() []review.Result {
	var list []review.Result
	for _, r := range v.without(v.doc.Placed()) {
		if !r.Earlier && !slices.ContainsFunc(list, func(x review.Result) bool { return x.Key() == r.Key() }) {
			list = append(list, r)
		}
	}
	limit, what := MaxComments, "findings"
	if v.doc.Lints != "" {
		limit, what = max(0, min(MaxLints, MaxAllLints-len(v.ours)-len(v.others))), "reports of linters"
	}
	if more := len(list) - limit; more > 0 {
		v.note("%d more %s have no comment of their own: a review has at most %d.", more, what, limit)
		list = list[:limit]
	}
	return list
}

// without returns the results that have no comment.
func (v *visit) without(list []review.Result) (kept []review.Result) {
	for _, r := range list {
		if key := r.Key(); len(v.ours[key]) == 0 && !v.others[key] {
			kept = append(kept, r)
		}
	}
	return kept
}

func (v *visit) send(ctx context.Context, list []review.Result) error {
	summary := fmt.Sprintf("fumehood verified %s on `%.12s`. The summary is in its comment on this pull request.", counted(len(list)), v.doc.Head)
	if v.doc.Lints != "" {
		summary = fmt.Sprintf("Commands that fumehood ran on `%.12s` report something about lines of this pull request (%d comments).", v.doc.Head, len(list))
	}
	r := github.NewReview{Commit: v.doc.Head, Body: summary}
	for _, x := range list {
		p := x.Position
		r.Comments = append(r.Comments, github.NewReviewComment{Path: p.Path, Line: p.Line, StartLine: p.StartLine, Side: p.Side, Body: body(v.doc, x, false, "")})
	}
	_, err := v.Client.CreateReview(ctx, v.PR, r)
	return err
}

func counted(n int) string {
	if n == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", n)
}

// accepted returns the results that are in the hunks that GitHub itself shows, after it refused
// all of them with err. If those are all, the reason is another one, and it returns err.
func (v *visit) accepted(ctx context.Context, list []review.Result, refused error) (kept []review.Result, err error) {
	hunks, err := v.Client.Hunks(ctx, v.PR)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if slices.ContainsFunc(hunks[r.Position.Path], func(h github.Hunk) bool { return r.Position.Within(review.Hunk(h)) }) {
			kept = append(kept, r)
		}
	}
	if len(kept) == len(list) {
		v.note("GitHub refused the comments on lines: the findings are only here.")
		return nil, refused
	}
	v.note("GitHub accepts no comment on the lines of %s: see below.", counted(len(list)-len(kept)))
	return kept, nil
}
