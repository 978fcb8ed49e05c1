// SPDX-License-Identifier: Apache-2.0

package comment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

const (
	token  = "ghs_workflow"
	number = 2
)

var head = githubtest.CommitID("head")

// town is a GitHub with one pull request, whose workflow token has the given rights.
func town(t *testing.T, rights ...string) *githubtest.Server {
	t.Helper()
	s := githubtest.New(t, githubtest.Options{})
	s.AddWorkflowToken(token, rights...)
	s.AddPR(githubtest.PR{Number: number, Head: githubtest.Ref{SHA: head}})
	return s
}

var rights = []string{"contents:read", "pull-requests:write"}

func patient(context.Context, time.Duration) error { return nil }

// The Settle of a keeper. A single job need not wait, so alone does not sleep, and
// no request is too late.
const (
	alone    = time.Hour
	together = 2 * time.Second
)

// keeper returns the Keeper of a new job.
func keeper(t *testing.T, s *githubtest.Server, token string, settle time.Duration) *comment.Keeper {
	t.Helper()
	return keeperOver(t, nil, s.URL, token, settle)
}

func keeperOver(t *testing.T, wire http.RoundTripper, url, token string, settle time.Duration) *comment.Keeper {
	t.Helper()
	client, err := github.New(github.Options{BaseURL: url, Transport: wire, Token: token, Repository: "Codertocat/Hello-World", Sleep: patient})
	if err != nil {
		t.Fatal(err)
	}
	author, err := client.Author(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	o := comment.Options{Client: client, Author: author, PR: number, Settle: settle}
	if settle == alone {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	k, err := comment.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func results(run int64) comment.Results {
	return comment.Results{
		Section: comment.Section{Source: comment.Source{Workflow: "ci.yml", Job: "unit"}, Mark: "✅", Title: ": 1 succeeded",
			Result: comment.Result{Stamp: comment.Stamp{Head: head, RunID: run, Attempt: 1}, Conclusion: "success"}},
		Body: func(comment.Room) string { return fmt.Sprintf("results of run %d", run) },
	}
}

// TestOnGitHub runs one job against GitHub's rules and its failures.
func TestOnGitHub(t *testing.T) {
	lanetest.SkipShort(t)
	mood := func(f githubtest.Fault) func(*githubtest.Server) {
		return func(s *githubtest.Server) { s.InjectFault(f) }
	}
	tests := []struct {
		name   string
		rights []string
		fresh  bool // no comment yet
		mood   func(*githubtest.Server)
		did    comment.WriteStatus
		code   string
		hint   string
	}{
		{"first", rights, true, nil, comment.Posted, "", ""},
		{"second", rights, false, nil, comment.Updated, "", ""},
		{"issues: write will do", []string{"contents:read", "pull-requests:read", "issues:write"}, true, nil, comment.Posted, "", ""},
		{"a fork's token", []string{"contents:read", "pull-requests:read"}, true, nil, comment.Refused, "github.permission", "pull-requests: write"},
		{"nothing granted", []string{}, true, nil, comment.Refused, "github.not-found", "pull-requests: read"},
		{"locked", rights, true, func(s *githubtest.Server) {
			s.ChangePullRequest(number, func(pr *githubtest.PR) { pr.Locked = true })
		}, comment.Refused, "github.locked", "unlock"},
		{"closed", rights, false, func(s *githubtest.Server) {
			s.ChangePullRequest(number, func(pr *githubtest.PR) { pr.State = "closed" })
		}, comment.Updated, "", ""},
		{"merged, the fork is gone", rights, true, func(s *githubtest.Server) {
			s.ChangePullRequest(number, func(pr *githubtest.PR) { pr.State, pr.Merged, pr.Head.Repository = "closed", true, "-" })
		}, comment.Posted, "", ""},
		{"a squatter on each page", rights, true, squat, comment.Posted, "", ""},
		{"ours is on page three", rights, false, squat, comment.Updated, "", ""},
		{"created, then reset", rights, true, mood(githubtest.Fault{Op: "issues/create-comment", Kind: githubtest.ResetAfter}), comment.Posted, "", ""},
		{"created, then 502", rights, true, mood(githubtest.Fault{Op: "issues/create-comment", Kind: githubtest.AnswerAfter}), comment.Posted, "", ""},
		{"created, then cut", rights, true, mood(githubtest.Fault{Op: "issues/create-comment", Kind: githubtest.Truncate}), comment.Posted, "", ""},
		{"reset, not created", rights, true, mood(githubtest.Fault{Op: "issues/create-comment", Kind: githubtest.ResetBefore}), comment.Posted, "", ""},
		{"updated, then reset", rights, false, mood(githubtest.Fault{Op: "issues/update-comment", Kind: githubtest.ResetAfter}), comment.Updated, "", ""},
		{"a replica that lags behind", rights, true, mood(githubtest.Fault{Op: "issues/get-comment", Kind: githubtest.NotFoundForAWhile}), comment.Posted, "", ""},
		{"a page comes twice", rights, false, func(s *githubtest.Server) {
			squat(s)
			s.InjectFault(githubtest.Fault{Op: "issues/list-comments", Kind: githubtest.DuplicatePage, Count: 2})
		}, comment.Updated, "", ""},
		{"the hour's requests are gone", rights, false, mood(githubtest.Fault{Op: "issues/update-comment", Kind: githubtest.PrimaryLimit, Delay: 50 * time.Minute}), comment.Refused, "github.rate-limit", "try again after"},
		{"deleted while we write", rights, false, func(s *githubtest.Server) {
			s.BeforeRequest("issues/update-comment", func(*http.Request) { s.RemoveComment(s.CommentsBy(number, githubtest.ActionsBot)[0].ID) })
		}, comment.Posted, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := town(t, test.rights...)
			if !test.fresh {
				if o := keeper(t, s, token, alone).ReplaceResults(context.Background(), results(10)); o.Did != comment.Posted {
					t.Fatalf("got %+v, %+v", o, o.Failure)
				}
			}
			if test.mood != nil {
				test.mood(s)
			}
			o := keeper(t, s, token, alone).ReplaceResults(context.Background(), results(11))
			if o.Did != test.did {
				t.Errorf("got %s (%+v), want %s", o.Did, o.Failure, test.did)
			}
			ours := s.CommentsBy(number, githubtest.ActionsBot)
			if o.Did == comment.Refused {
				if o.Failure.Code != test.code || !strings.Contains(o.Failure.Hint, test.hint) {
					t.Errorf("got %+v", o.Failure)
				}
				return
			}
			if len(ours) != 1 || !strings.HasSuffix(ours[0].Body, "\nresults of run 11") || !strings.Contains(o.URL, fmt.Sprint(ours[0].ID)) {
				t.Errorf("got %+v, and %+v", ours, o)
			}
		})
	}
}

// A keeper waits for the end of GitHub's secondary limit.
func TestSecondaryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{near(t), newDelays(1)}
		s.AddWorkflowToken(token, rights...)
		s.AddPR(githubtest.PR{Number: number, Head: githubtest.Ref{SHA: head}})
		s.InjectFault(githubtest.Fault{Op: "issues/create-comment", Kind: githubtest.SecondaryLimit, Status: 429, Delay: time.Second})
		o := keeperOver(t, s.client(0), s.URL, token, together).ReplaceResults(context.Background(), results(11))
		ours := s.CommentsBy(number, githubtest.ActionsBot)
		if o.Did != comment.Posted || len(ours) != 1 || !strings.HasSuffix(ours[0].Body, "\nresults of run 11") {
			t.Errorf("got %+v, and %+v", ours, o)
		}
	})
}

// squat fills the conversation with comments in which the pull request's author has
// put the marker, on every page.
func squat(s *githubtest.Server) {
	for i := range 230 {
		body := "me too"
		if i%100 == 50 {
			body = comment.Marker + "\n<!-- fumehood:state {\"v\":2} -->\nall is well"
		}
		s.AddComment(number, "octocat", body)
	}
}

func TestSquattersAreCounted(t *testing.T) {
	t.Parallel()
	s := town(t, rights...)
	squat(s)
	if o := keeper(t, s, token, alone).ReplaceResults(context.Background(), results(10)); o.Others != 2 {
		t.Errorf("got %d, want 2", o.Others)
	}
	for _, c := range s.CommentsBy(number, "octocat") {
		if c.Edits != 0 {
			t.Errorf("comment %d was edited", c.ID)
		}
	}
}

// TestJobsAtTheSameTime lets jobs race, with requests that take up to an eighth of
// a second of the bubble's time.
func TestJobsAtTheSameTime(t *testing.T) {
	lanetest.SkipShort(t)
	for seed := range sample.Rounds(t, 20, 5, 2) {
		synctest.Test(t, func(t *testing.T) { jobsAtTheSameTime(t, slow{near(t), newDelays(uint64(seed))}) })
	}
}

func jobsAtTheSameTime(t *testing.T, s slow) {
	s.AddWorkflowToken(token, rights...)
	s.AddPR(githubtest.PR{Number: number, Head: githubtest.Ref{SHA: head}})
	var jobs sync.WaitGroup
	for i := range 4 {
		k := keeperOver(t, s.client(2*i), s.URL, token, together)
		jobs.Go(func() {
			if o := k.ReplaceResults(context.Background(), results(int64(10+i))); o.Did == comment.Refused {
				t.Errorf("run %d: %+v", 10+i, o.Failure)
			}
		})
		answers := keeperOver(t, s.client(2*i+1), s.URL, token, together)
		jobs.Go(func() {
			n := comment.Notice{Comment: int64(900 + i), Text: "answer", Start: int64(10 + i), Time: time.Now()}
			if o := answers.ReplaceNotice(context.Background(), n); o.Did == comment.Refused {
				t.Errorf("answer %d: %+v", i, o.Failure)
			}
		})
	}
	jobs.Wait()
	ours := s.CommentsBy(number, githubtest.ActionsBot)
	if len(ours) != 1 || !strings.HasSuffix(ours[0].Body, "results of run 13") {
		t.Fatalf("got %+v", ours)
	}
	state, err := keeperOver(t, s, s.URL, token, together).Read(context.Background())
	if err != nil || state.CountStarts() != 4 || state.Notice.Comment != 903 {
		t.Errorf("got %+v, %v", state, err)
	}
}

// near is a GitHub without a network in between.
func near(t *testing.T) *githubtest.Server {
	t.Helper()
	s, err := githubtest.NewHandler(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://api.test"
	return s
}

// slow passes requests to a GitHub in the same bubble.
type slow struct {
	*githubtest.Server
	*delays
}

// delays are random, and the same for a client in each run of the test.
type delays struct {
	seed uint64
	mu   sync.Mutex
	*rand.Rand
}

func newDelays(seed uint64) *delays { return &delays{seed: seed, Rand: rand.New(rand.NewPCG(seed, 0))} }

// client is s with the delays of one of several clients.
func (s slow) client(i int) slow {
	return slow{s.Server, &delays{seed: s.seed, Rand: rand.New(rand.NewPCG(s.seed, uint64(i)+1))}}
}

func (d *delays) wait() {
	d.mu.Lock()
	delay := time.Duration(d.Int64N(int64(together / 32)))
	d.mu.Unlock()
	time.Sleep(delay)
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.wait()
	w := httptest.NewRecorder()
	in := httptest.NewRequest(r.Method, r.URL.String(), r.Body)
	in.Header = r.Header
	s.ServeHTTP(w, in)
	s.wait()
	return w.Result(), nil
}

func TestHeadMovesWhileWeLook(t *testing.T) {
	t.Parallel()
	s := town(t, rights...)
	s.BeforeRequest("pulls/get", func(*http.Request) { s.MoveHead(number, githubtest.CommitID("pushed")) })
	r, moved := results(10), false
	r.Body = func(room comment.Room) string {
		moved = room.Moved && room.Head == githubtest.CommitID("pushed")
		return "x"
	}
	o := keeper(t, s, token, alone).ReplaceResults(context.Background(), r)
	if o.Did != comment.Posted || !moved || o.Head != githubtest.CommitID("pushed") {
		t.Errorf("got %+v, moved %v", o, moved)
	}
}

// TestPersonalToken: GitHub reports the token's user by id.
func TestPersonalToken(t *testing.T) {
	t.Parallel()
	s := town(t)
	s.SetRole("hubot", "write")
	s.AddToken("ghp_hubot", githubtest.Token{Login: "hubot", Scopes: "repo"})
	for run := range int64(2) {
		if o := keeper(t, s, "ghp_hubot", alone).ReplaceResults(context.Background(), results(10+run)); o.Did == comment.Refused {
			t.Errorf("got %+v", o.Failure)
		}
	}
	if ours := s.CommentsBy(number, "hubot"); len(ours) != 1 || ours[0].Edits != 1 {
		t.Errorf("got %+v", ours)
	}
}

func TestTokenOfAnotherApp(t *testing.T) {
	t.Parallel()
	s := town(t)
	s.AddToken("ghs_app", githubtest.Token{Login: "my-app[bot]", Permissions: map[string]string{"pull_requests": "write"}})
	for run := range int64(3) {
		if o := keeper(t, s, "ghs_app", alone).ReplaceResults(context.Background(), results(10+run)); o.Did == comment.Refused {
			t.Errorf("got %+v", o.Failure)
		}
	}
	if ours := s.CommentsBy(number, "my-app[bot]"); len(ours) != 1 || !strings.HasSuffix(ours[0].Body, "results of run 12") {
		t.Errorf("got %+v", ours)
	}
}
