// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/review"
)

// transient are the kinds of failures after which the next run tries again. All others mean that
// the token or the server cannot do it.
var transient = []github.Kind{github.RateLimited, github.Unavailable, github.Uncertain, github.Canceled, ""}

// A threadList is the threads of a pull request by their first comment, read when the first of
// them is needed.
type threadList struct {
	byComment map[int64]github.ReviewThread
	failed    error // why threads are left to the next run
}

// syncThreadState resolves the thread of our comment c, whose finding changes its state, if it is gone, and
// unresolves it if it is verified again. It reports whether nothing is left to do. What a person
// has resolved, and what already is as it should be, stays: so a thread is touched only once for
// each change.
func (v *reviewUpdate) syncThreadState(ctx context.Context, c postedComment, state string) bool {
	gone := state == states[review.NotReproduced]
	if c.state == state && !c.pending || !gone && state != states[review.Verified] {
		return true
	}
	if v.threads.byComment == nil && v.threads.failed == nil {
		v.stopThreads(v.readThreads(ctx))
	}
	t, found := v.threads.byComment[c.ID]
	if found && t.Resolved != gone && (gone || v.resolvedByUs(t)) {
		err := v.Client.ResolveThread(ctx, t.ID, gone)
		if err == nil {
			v.out.Threads++
		}
		v.stopThreads(err)
	}
	return v.threads.failed == nil
}

func (v *reviewUpdate) readThreads(ctx context.Context) error {
	v.threads.byComment = map[int64]github.ReviewThread{}
	all, err := v.Client.ReviewThreads(ctx, v.PR)
	for _, t := range all {
		v.threads.byComment[t.Comment] = t
	}
	return err
}

// stopThreads ends work on threads after an error, which is a failure only if it is transient: the
// comment says what the thread would. A thread that is gone concerns no other.
func (v *reviewUpdate) stopThreads(err error) {
	kind := github.KindOf(err)
	if err == nil || kind == github.NotFound {
		return
	}
	v.threads.byComment = map[int64]github.ReviewThread{}
	if slices.Contains(transient, kind) {
		v.threads.failed = err
	}
}

// resolvedByUs reports whether no person other than the token's account has resolved t. GitHub
// does not name a bot there.
func (v *reviewUpdate) resolvedByUs(t github.ReviewThread) bool {
	by := t.ResolvedBy
	if v.Author.ID != 0 {
		return by.ID == 0 || by.ID == v.Author.ID
	}
	return by.Login == "" || by.Login == strings.TrimSuffix(v.Author.Login, "[bot]") || by.Login == v.Author.Login
}
