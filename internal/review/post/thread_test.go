// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/post"
)

// mayResolve gives the token what GitHub requires for resolving threads.
func (w *town) mayResolve() {
	w.AddWorkflowToken(secret, "contents:write", "pull-requests:write")
}

// shows posts a review in which the first finding has a verdict, and fails unless its thread is
// resolved as wanted, after so many changes.
func (w *town) shows(d review.Document, verdict review.Verdict, resolved bool, changes int) {
	w.t.Helper()
	d.Results[0].Verdict = verdict
	o := w.post(d)
	if c := w.ReviewComments(number)[0]; o.Failure != nil || o.Threads != changes || (c.ResolvedBy != "") != resolved {
		w.t.Errorf("%s: %+v, %+v", verdict, o, c)
	}
}

// mutations counts the requests that would change a thread.
func (w *town) mutations() (n int) {
	for _, r := range w.RequestsFor("graphql") {
		if strings.Contains(string(r.Body), "mutation") {
			n++
		}
	}
	return n
}

// A thread is resolved once when its finding is gone, and unresolved when it is verified again.
// Verdicts that show nothing, and one that it is older, leave it.
func TestResolve(t *testing.T) {
	w := small(t)
	w.mayResolve()
	d := w.document(finding(10), finding(11))
	w.post(d)
	if n := len(w.RequestsFor("graphql")); n != 0 {
		t.Errorf("%d requests for threads of nothing that has changed", n)
	}
	w.shows(d, review.NotReproduced, true, 1)
	w.shows(d, review.NotReproduced, true, 0)
	w.shows(d, review.Flaky, true, 0)
	w.shows(d, review.Verified, false, 1)
	w.shows(d, review.Verified, false, 0)
	w.shows(d, review.PreExisting, false, 0)
	w.shows(d, review.NotReproduced, true, 1)
	w.shows(d, review.PreExisting, true, 0)
	w.shows(d, review.Verified, false, 1)
	if other := w.ReviewComments(number)[1]; w.mutations() != 4 || other.ResolvedBy != "" || other.Edits != 0 {
		t.Errorf("%d changes, %+v", w.mutations(), other)
	}
}

// What a person resolved or unresolved stays, as long as the finding has not changed; what a person
// resolved stays in any case.
func TestResolveByHand(t *testing.T) {
	w := small(t)
	w.mayResolve()
	d := w.document(finding(10))
	w.post(d)
	id := w.ReviewComments(number)[0].ID
	w.SetResolved(id, "octocat")
	for _, verdict := range []review.Verdict{review.Verified, review.NotReproduced, review.Verified} {
		w.shows(d, verdict, true, 0)
	}
	w.SetResolved(id, "")
	w.shows(d, review.Verified, false, 0)
	w.shows(d, review.NotReproduced, true, 1)
	w.SetResolved(id, "")
	w.shows(d, review.NotReproduced, false, 0)
	w.shows(d, review.Verified, false, 0)
	w.shows(d, review.NotReproduced, true, 1)
	if by := w.ReviewComments(number)[0].ResolvedBy; by != githubtest.ActionsBot {
		t.Errorf("resolved by %q", by)
	}
}

// A comment that only says where its lines are now leaves its thread as it is.
func TestResolveMoved(t *testing.T) {
	w := small(t)
	w.mayResolve()
	w.post(w.document(finding(11)))
	w.SetResolved(w.ReviewComments(number)[0].ID, "other[bot]")
	w.push(smallFiles("zero\nten\nELEVEN\n"))
	d := w.document(finding(11))
	w.shows(d, review.Verified, true, 0)
	if c := w.ReviewComments(number)[0]; c.Edits != 1 || len(w.RequestsFor("graphql")) != 0 {
		t.Errorf("%+v", c)
	}
}

// The token of a person may be named as who resolved a thread: that is still us.
func TestResolveAsPerson(t *testing.T) {
	w := small(t)
	w.AddToken(secret, githubtest.Token{Login: "Codertocat", Scopes: "repo"})
	w.SetRole("Codertocat", "write")
	o := w.options(nil)
	o.Author = github.Author{Login: "Codertocat", ID: w.UserID("Codertocat"), Type: "User"}
	d := w.document(finding(10))
	for i, verdict := range []review.Verdict{review.Verified, review.NotReproduced, review.Verified} {
		d.Results[0].Verdict = verdict
		if out := post.Post(t.Context(), o, d); out.Failure != nil || out.Threads != min(i, 1) {
			t.Errorf("%s: %+v", verdict, out)
		}
	}
}

// A thread that another account began with our marker is not touched, nor one whose marker is not
// on the first line, nor any other.
func TestResolveNotOurs(t *testing.T) {
	w := small(t)
	w.mayResolve()
	d := w.document(finding(10))
	w.post(d)
	body := w.ReviewComments(number)[0].Body
	w.AddReviewComment(number, "octocat", body, "f", 10)
	w.AddReviewComment(number, "other[bot]", body, "f", 10)
	w.AddReviewComment(number, githubtest.ActionsBot, "> "+body, "f", 10)
	w.AddReviewComment(number, githubtest.ActionsBot, "no marker", "f", 10)
	w.shows(d, review.NotReproduced, true, 1)
	for _, c := range w.ReviewComments(number)[1:] {
		if c.ResolvedBy != "" || c.Edits > 0 {
			t.Errorf("%+v", c)
		}
	}
}

// A token or a server that cannot resolve threads is no failure: the comments say it, after one
// attempt.
func TestResolveForbidden(t *testing.T) {
	lanetest.SkipShort(t)
	for what, prepare := range map[string]func(*town){
		"token": func(w *town) { w.AddWorkflowToken(secret, "contents:read", "pull-requests:write") },
		"no server": func(w *town) {
			w.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.NotFoundForAWhile, Count: -1})
		},
		"blocked": func(w *town) {
			w.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.Answer, Status: 403, Count: -1})
		},
		"proxy": func(w *town) {
			w.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.Answer, Status: 200, Body: "<html>", Count: -1})
		},
		"schema": func(w *town) {
			w.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.Answer, Status: 200, Body: `{"errors":[{"message":"Field 'fullDatabaseId' doesn't exist on type 'PullRequestReviewComment'"}]}`, Count: -1})
		},
	} {
		w := small(t)
		w.mayResolve()
		d := w.document(finding(10), finding(11))
		w.post(d)
		prepare(w)
		d.Results[0].Verdict, d.Results[1].Verdict = review.NotReproduced, review.NotReproduced
		o := w.post(d)
		if o.Failure != nil || o.Updated != 2 || o.Threads != 0 || len(o.Notes) != 0 || w.mutations() > 1 {
			t.Errorf("%s: %+v, %d changes", what, o, w.mutations())
		}
		for _, c := range w.ReviewComments(number) {
			if c.ResolvedBy != "" || !strings.Contains(c.Body, "No longer") || strings.Contains(c.Body, "pending") {
				t.Errorf("%s: %+v", what, c)
			}
		}
		if again := w.post(d); again.Updated != 0 || again.Failure != nil {
			t.Errorf("%s: again: %+v", what, again)
		}
	}
}

// While GitHub does not answer about threads, comments stay true, and the next run goes on from
// there, whatever the finding has become.
func TestResolveLater(t *testing.T) {
	for _, next := range []review.Verdict{review.NotReproduced, review.Verified} {
		w := small(t)
		w.mayResolve()
		d := w.document(finding(10))
		w.post(d)
		d.Results[0].Verdict = review.NotReproduced
		w.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.Answer, Status: 502, Count: -1})
		o := w.post(d)
		if c := w.ReviewComments(number)[0]; o.Failure == nil || o.Failure.Code != "github.unavailable" || o.Updated != 1 || !strings.Contains(c.Body, "No longer") {
			t.Errorf("%+v, %+v", o, c)
		}
		w.RemoveFaults()
		gone := next == review.NotReproduced
		w.shows(d, next, gone, map[bool]int{true: 1}[gone])
		if c := w.ReviewComments(number)[0]; strings.Contains(c.Body, "No longer") != gone || strings.Contains(c.Body, "pending") {
			t.Errorf("%s: %s", next, c.Body)
		}
	}
}

// Threads beyond the first hundred are found.
func TestResolveMany(t *testing.T) {
	lanetest.SkipShort(t)
	w := small(t)
	w.mayResolve()
	for i := range 250 {
		w.AddReviewComment(number, "octocat", fmt.Sprint("comment ", i), "f", 10)
	}
	d := w.document(finding(10))
	w.post(d)
	d.Results[0].Verdict = review.NotReproduced
	o := w.post(d)
	all := w.ReviewComments(number)
	if last := all[len(all)-1]; o.Failure != nil || o.Threads != 1 || last.ResolvedBy == "" {
		t.Errorf("%+v, %+v", o, last)
	}
	if n := len(w.RequestsFor("graphql")); n != 4 {
		t.Errorf("%d requests", n)
	}
	if slices.ContainsFunc(all[:250], func(c githubtest.ReviewComment) bool { return c.ResolvedBy != "" }) {
		t.Error("a thread of another author was resolved")
	}
}
