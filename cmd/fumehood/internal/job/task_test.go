// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
)

// Code is a fork's unless the API says that both sides are one repository.
func TestFork(t *testing.T) {
	ref := func(id int64, name string) github.Ref { return github.Ref{RepositoryID: id, Repository: name} }
	for name, test := range map[string]struct {
		head, base github.Ref
		want       string // the fork's name
	}{
		"the same":             {ref(1, "mona/app"), ref(1, "mona/app"), ""},
		"another":              {ref(2, "eve/app"), ref(1, "mona/app"), "eve/app"},
		"another of that name": {ref(2, "mona/app"), ref(1, "mona/app"), "mona/app"},
		"a deleted one":        {ref(0, ""), ref(1, "mona/app"), "a repository that is gone"},
		"both unknown":         {ref(0, ""), ref(0, ""), "a repository that is gone"},
	} {
		pr := github.PullRequest{Head: test.head, Base: test.base}
		if got := forkName(describePR(pr)); got != test.want || isFork(pr) != (test.want != "") {
			t.Errorf("%s: %q, %t", name, got, isFork(pr))
		}
	}
	if got := forkName(nil); got != "" {
		t.Errorf("no pull request: %q", got)
	}
}

// The pull requests that a run may be about have its commit, or else its branch, of the
// repository that it came from; a branch name alone chooses none.
func TestCandidates(t *testing.T) {
	pr := func(n int, sha, state string, repository int64) github.PullRequest {
		return github.PullRequest{Number: n, State: state, Head: github.Ref{SHA: sha, RepositoryID: repository}}
	}
	run := action.WorkflowRun{HeadSHA: sha, HeadRepositoryID: 2}
	for name, test := range map[string]struct {
		all  []github.PullRequest
		want []int
	}{
		"none":                    {nil, nil},
		"its commit":              {[]github.PullRequest{pr(3, otherSHA, "open", 2), pr(1, sha, "closed", 2)}, []int{1}},
		"its commit twice":        {[]github.PullRequest{pr(3, sha, "open", 2), pr(2, otherSHA, "open", 2), pr(1, sha, "closed", 2)}, []int{3, 1}},
		"moved on":                {[]github.PullRequest{pr(5, otherSHA, "closed", 2), pr(3, otherSHA, "open", 2)}, []int{5, 3}},
		"another repository's":    {[]github.PullRequest{pr(3, sha, "open", 1)}, nil},
		"of a repository no more": {[]github.PullRequest{pr(3, sha, "open", 0)}, nil},
	} {
		var got []int
		for _, pr := range candidates(test.all, run) {
			got = append(got, pr.Number)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if of := candidates([]github.PullRequest{pr(3, sha, "open", 0)}, action.WorkflowRun{HeadSHA: sha}); len(of) > 0 {
		t.Errorf("two repositories that are gone are one: %+v", of)
	}
}

// The workflow's own plan is for the commit of the event, and for a comment or dispatch
// the one that the API has.
func TestPlannedRequest(t *testing.T) {
	pr := github.PullRequest{Number: 2, Head: github.Ref{SHA: otherSHA}, Base: github.Ref{SHA: "base"}}
	for name, test := range map[string]struct {
		event action.Event
		want  Request
	}{
		"pull_request": {action.Event{Name: "pull_request", Number: 2, PR: &action.PullRequest{Head: action.Ref{SHA: sha}}}, Request{PR: 2, Head: sha, Base: "base"}},
		"comment":      {action.Event{Name: "issue_comment", Number: 2}, Request{PR: 2, Head: otherSHA, Base: "base"}},
		"dispatch":     {action.Event{Name: "workflow_dispatch"}, Request{Head: "runner", Base: "runner"}},
	} {
		j := &Job{event: test.event, runner: action.Runner{SHA: "runner"}}
		got := j.plannedRequest(pr)
		if got.PR != test.want.PR || got.Head != test.want.Head || got.Base != test.want.Base || got.Command != "plan" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
