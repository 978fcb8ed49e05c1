// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// These tests use the fake that checks each request against GitHub's own description of
// its API. It fails the test for every request that GitHub would refuse or partly ignore.

const (
	workflowToken = "ghs_workflow"
	head          = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
)

// rights are the permissions that the workflows to copy request.
var rights = []string{"contents:read", "pull-requests:write", "checks:write", "actions:read"}

func fake(t *testing.T, o githubtest.Options, rights ...string) (*githubtest.Server, *github.Client) {
	t.Helper()
	s := githubtest.New(t, o)
	s.AddWorkflowToken(workflowToken, rights...)
	s.AddPR(githubtest.PR{Number: 2, Author: "hubot", Head: githubtest.Ref{SHA: head, Ref: "changes", Repository: "octocat/Hello-World"}})
	return s, dial(t, s, workflowToken)
}

func dial(t *testing.T, s *githubtest.Server, token string) *github.Client {
	t.Helper()
	c, err := github.New(github.Options{
		BaseURL: s.URL, Token: token, Repository: "Codertocat/Hello-World",
		Transport: &http.Transport{DisableKeepAlives: true}, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every operation succeeds once, on github.com and on a GHES.
func TestEveryOperation(t *testing.T) {
	lanetest.SkipShort(t)
	for _, prefix := range []string{"", "/api/v3"} {
		t.Run("API at "+prefix+"/", func(t *testing.T) {
			s, c := fake(t, githubtest.Options{Prefix: prefix}, rights...)
			t.Run("pull requests", func(t *testing.T) { usePulls(t, s, c) })
			t.Run("branches", func(t *testing.T) { useBranches(t, s, c) })
			t.Run("files", func(t *testing.T) { useFiles(t, s, c) })
			t.Run("comments", func(t *testing.T) { useComments(t, s, c) })
			t.Run("reviews", func(t *testing.T) { useReviews(t, s, c) })
			t.Run("people", func(t *testing.T) { usePeople(t, s, c) })
			t.Run("runs", func(t *testing.T) { useRuns(t, s, c) })
			t.Run("checks", func(t *testing.T) { useChecks(t, s, c) })
		})
	}
}

func usePulls(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	s.ChangePullRequest(2, func(pr *githubtest.PR) {
		for i := range 130 {
			pr.Files = append(pr.Files, githubtest.File{Path: fmt.Sprintf("f%d", i), Status: "added"})
		}
	})
	pull, err := c.PullRequest(ctx, 2)
	if err != nil || pull.Head.SHA != head || pull.Head.Repository != "octocat/Hello-World" || pull.Author.Login != "hubot" {
		t.Errorf("got %+v, %v", pull, err)
	}
	if _, err := c.Diff(ctx, 2); err != nil {
		t.Errorf("the diff: %v", err)
	}
	pulls, err := c.PullRequestsByHead(ctx, "octocat", "changes")
	if err != nil || len(pulls) != 1 || pulls[0].Number != 2 || pulls[0].Base.RepositoryID != 186853002 {
		t.Errorf("got %+v, %v", pulls, err)
	}
	files, complete, err := c.Files(ctx, 2)
	if err != nil || !complete || len(files) != 130 || files[129] != (github.File{Path: "f129", Status: "added"}) {
		t.Errorf("got %d files, %v, %v", len(files), complete, err)
	}
	s.ChangePullRequest(2, func(pr *githubtest.PR) { pr.Head.Repository = "-" })
	pull, err = c.PullRequest(ctx, 2)
	if err != nil || pull.Head != (github.Ref{SHA: head, Ref: "changes"}) {
		t.Errorf("without its fork: got %+v, %v", pull.Head, err)
	}
}

func useBranches(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	if tip, err := c.DefaultBranch(ctx); err != nil || tip != (github.Branch{Name: "master", SHA: githubtest.CommitID("base")}) {
		t.Errorf("got %+v, %v", tip, err)
	}
	s.AddPR(githubtest.PR{Number: 9, Base: githubtest.Ref{Ref: "release/1 #%2F", SHA: head}})
	if branch, err := c.Branch(ctx, "release/1 #%2F"); err != nil || branch.SHA != head {
		t.Errorf("got %+v, %v", branch, err)
	}
	if branch, err := c.Branch(ctx, "none"); github.KindOf(err) != github.NotFound || branch != (github.Branch{}) {
		t.Errorf("got %+v, %v", branch, err)
	}
}

func useFiles(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	data := []byte("\x1f\x8b\x00 not JSON")
	s.SetContent(githubtest.CommitID("base"), "dir/a #1.tar.gz", data)
	commit, err := c.CommitOf(ctx, "heads/master")
	if err != nil || commit != githubtest.CommitID("base") {
		t.Errorf("got %q, %v", commit, err)
	}
	if _, err := c.CommitOf(ctx, "heads/none"); github.KindOf(err) != github.Invalid {
		t.Errorf("a ref that does not exist: %v", err)
	}
	if got, err := c.File(ctx, commit, "dir/a #1.tar.gz"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %q, %v", got, err)
	}
	for path, kind := range map[string]github.Kind{"dir": github.Malformed, "dir/none": github.NotFound} {
		if got, err := c.File(ctx, commit, path); github.KindOf(err) != kind || got != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	s.SetContent(commit, "large", bytes.Repeat([]byte("x"), 8<<20+1))
	if got, err := c.File(ctx, commit, "large"); github.KindOf(err) != github.TooLarge || got != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A token for one repository does not see another that is private: GitHub answers 404.
func TestPrivateRepository(t *testing.T) {
	s := githubtest.New(t, githubtest.Options{})
	s.AddRepository(githubtest.Repository{Name: "acme/policy", Private: true})
	s.AddWorkflowToken("ghs_workflow", "contents:read")
	reader := map[string]string{"contents": "read"}
	s.AddToken("ghs_app", githubtest.Token{Login: "policy[bot]", Permissions: reader, Repositories: []string{"Acme/policy"}})
	s.AddToken("ghs_blind", githubtest.Token{Login: "policy[bot]", Repositories: []string{"acme/policy"}})
	for token, kind := range map[string]github.Kind{"ghs_workflow": github.NotFound, "ghs_blind": github.NotFound, "": github.NotFound,
		"ghs_wrong": github.Unauthorized, "ghs_app": github.Invalid} { // it sees that there is no such ref
		c, err := github.New(github.Options{BaseURL: s.URL, Token: token, Repository: "acme/policy"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CommitOf(t.Context(), "heads/none"); github.KindOf(err) != kind {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func useReviews(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	s.ChangePullRequest(2, func(pr *githubtest.PR) {
		pr.Files = []githubtest.File{{Path: "a.go", Patch: "@@ -1,2 +1,3 @@ func\n a\n+b\n c\n@@ -9 +10 @@\n-x\n+@@ -1 +1 @@\n"}, {Path: "b.png"}}
	})
	made, err := c.CreateReview(ctx, 2, github.NewReview{Commit: head, Body: "two", Comments: []github.NewReviewComment{
		{Path: "a.go", Body: "one line", Line: 10, Side: "RIGHT"}, {Path: "a.go", Body: "lines", Line: 3, StartLine: 1, Side: "RIGHT"}}})
	if err != nil || made.State != "COMMENTED" || made.Commit != head || made.Author.Login != githubtest.ActionsBot {
		t.Fatalf("got %+v, %v", made, err)
	}
	if _, err := c.CreateReview(ctx, 2, github.NewReview{Commit: head, Body: "b", Comments: []github.NewReviewComment{{Path: "a.go", Body: "b", Line: 5, Side: "RIGHT"}}}); github.KindOf(err) != github.Invalid {
		t.Errorf("a position outside the diff: %v", err)
	}
	list, err := c.ReviewComments(ctx, 2)
	if err != nil || len(list) != 2 || list[1].Line != 3 || list[1].Review != made.ID || list[1].Path != "a.go" || list[1].URL == "" {
		t.Fatalf("got %+v, %v", list, err)
	}
	if err := errors.Join(c.UpdateReviewComment(ctx, list[0].ID, "new"), c.DeleteReviewComment(ctx, list[1].ID)); err != nil {
		t.Error(err)
	}
	if left := s.ReviewComments(2); len(left) != 1 || left[0].Body != "new" {
		t.Errorf("left %+v", left)
	}
	if reviews := s.Reviews(2); len(reviews) != 1 || reviews[0].ID != made.ID {
		t.Errorf("got %+v, created %+v", reviews, made)
	}
	hunks, err := c.Hunks(ctx, 2)
	if diff := cmp.Diff(map[string][]github.Hunk{"a.go": {{Old: 1, OldLines: 2, New: 1, NewLines: 3}, {Old: 9, OldLines: 1, New: 10, NewLines: 1}}}, hunks); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, sent := range s.RequestsFor("pulls/create-review") {
		if !bytes.Contains(sent.Body, []byte(`"event":"COMMENT"`)) {
			t.Errorf("sent %s", sent.Body)
		}
	}
}

func useComments(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	for i := range 250 {
		s.AddComment(2, "octocat", fmt.Sprint(i))
	}
	made, err := c.CreateComment(ctx, 2, "hello <!-- & --> @octocat")
	if err != nil || made.Author != (github.Author{Login: "github-actions[bot]", ID: 41898282, Type: "Bot"}) {
		t.Fatalf("got %+v, %v", made, err)
	}
	if _, err := c.UpdateComment(ctx, made.ID, "bye"); err != nil {
		t.Error(err)
	}
	read, err := c.Comment(ctx, made.ID)
	if err != nil || read.Body != "bye" || read.URL == "" || read.Created.IsZero() {
		t.Errorf("got %+v, %v", read, err)
	}
	list, err := c.Comments(ctx, 2)
	if err != nil || len(list) != 251 || list[0].Body != "0" || list[250] != read {
		t.Errorf("got %d comments, %v", len(list), err)
	}
	for range 2 {
		if err := c.AddReaction(ctx, made.ID, "eyes"); err != nil || len(s.Reactions(made.ID)) != 1 {
			t.Errorf("got %v, %v", s.Reactions(made.ID), err)
		}
	}
	if err := c.DeleteComment(ctx, made.ID); err != nil || len(s.CommentsBy(2, githubtest.ActionsBot)) != 0 {
		t.Error(err)
	}
	if _, err := c.Comment(ctx, made.ID); github.KindOf(err) != github.NotFound {
		t.Errorf("got %v", err)
	}
}

func usePeople(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	for _, role := range []string{"admin", "maintain", "write", "triage", "read", "none"} {
		s.SetRole("octocat", role)
		if got, err := c.Permission(ctx, "octocat"); err != nil || got != (github.Permission{Level: role, UserID: 583231}) {
			t.Errorf("as %s got %v, %v", role, got, err)
		}
	}
	if got, err := c.Permission(ctx, "dependabot[bot]"); err != nil || got.UserID != 49699333 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := c.Permission(ctx, "nobody-here"); err != nil || got != (github.Permission{Level: "none"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := c.Author(ctx); err != nil || got.Login != githubtest.ActionsBot || got.Type != "Bot" || c.Scopes() != "" {
		t.Errorf("got %v, %v, scopes %q", got, err, c.Scopes())
	}
	s.AddToken("ghp_classic", githubtest.Token{Login: "octocat", Scopes: "repo"})
	person := dial(t, s, "ghp_classic")
	if got, err := person.Author(ctx); err != nil || got.ID != 583231 || person.Scopes() != "repo" {
		t.Errorf("got %v, %v, scopes %q", got, err, person.Scopes())
	}
}

func useRuns(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	zip := bytes.Repeat([]byte("PK"), 5000)
	run := s.AddRun(githubtest.Run{ID: 7, Event: "pull_request", HeadSHA: head, HeadRepository: "octocat/Hello-World"})
	s.AddArtifact(githubtest.Artifact{ID: 8, Run: 7, Name: "fumehood", Data: zip, Digest: "sha256:" + strings.Repeat("0", 64)})
	got, err := c.WorkflowRun(ctx, 7)
	if err != nil || got.HeadSHA != head || got.HeadRepository != "octocat/Hello-World" || got.HeadRepositoryID == 0 || got.Path != run.Path {
		t.Errorf("got %+v, %v", got, err)
	}
	artifacts, err := c.Artifacts(ctx, 7)
	if err != nil || len(artifacts) != 1 || artifacts[0].Name != "fumehood" || artifacts[0].Size != 10000 || artifacts[0].Digest == "" {
		t.Errorf("got %+v, %v", artifacts, err)
	}
	data, err := c.DownloadArtifact(ctx, 8, 10000)
	if err != nil || !bytes.Equal(data, zip) {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	if _, err := c.DownloadArtifact(ctx, 8, 9999); github.KindOf(err) != github.TooLarge {
		t.Errorf("got %v", err)
	}
	now := time.Now()
	for i, conclusion := range []string{"skipped", "success", "failure", "skipped"} {
		s.AddRun(githubtest.Run{Event: "issue_comment", Conclusion: conclusion, Created: now.Add(time.Duration(i) * time.Second)})
	}
	s.AddRun(githubtest.Run{Event: "issue_comment", Created: now.Add(-time.Hour)})
	if n, err := c.CountWorkflowRuns(ctx, []string{"issue_comment"}, "", now.Add(-time.Minute)); err != nil || counted(n) != 2 {
		t.Errorf("counted %v, %v", n, err)
	}
}

func useChecks(t *testing.T, s *githubtest.Server, c *github.Client) {
	ctx := context.Background()
	run := github.CheckRun{Name: "fumehood", HeadSHA: head, Status: "in_progress", DetailsURL: "https://example.com/run", ExternalID: "x"}
	id, err := c.CreateCheckRun(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	run.Status, run.Conclusion = "completed", "failure"
	run.Title, run.Summary, run.Text = strings.Repeat("t", 300), strings.Repeat("€", 70000), strings.Repeat("x", 70000)
	for i := range 120 {
		run.Annotations = append(run.Annotations, github.Annotation{Path: "a.go", StartLine: i + 1, EndLine: i + 1, Level: "warning", Title: "vet", Message: "m"})
	}
	if err := c.UpdateCheckRun(ctx, id, run); err != nil {
		t.Fatal(err)
	}
	got := s.CheckRuns(head)
	if len(got) != 1 || got[0].Conclusion != "failure" || len(got[0].Annotations) != 120 || got[0].Annotations[119].StartLine != 120 {
		t.Errorf("got %d check runs", len(got))
	}
	if id, err := c.CreateCheckRun(ctx, run); err != nil || id == 0 || len(s.CheckRuns(head)[1].Annotations) != 120 {
		t.Errorf("got %d, %v", id, err)
	}
}

// Each operation without its right: the hint names the permission that the fake requires.
func TestMissingRights(t *testing.T) {
	s, _ := fake(t, githubtest.Options{}, rights...)
	s.AddRun(githubtest.Run{ID: 7, Event: "pull_request", HeadSHA: head})
	s.AddArtifact(githubtest.Artifact{ID: 8, Run: 7, Name: "fumehood", Data: []byte("PK")})
	id := s.AddComment(2, githubtest.ActionsBot, "mine")
	remark := s.AddReviewComment(2, githubtest.ActionsBot, "mine", "a.go", 1)
	s.AddWorkflowToken("none", "contents:read")
	ctx := context.Background()
	tests := []struct {
		name string
		need string
		do   func(c *github.Client) error
	}{
		{"PullRequest", "pull-requests: read", func(c *github.Client) error { _, err := c.PullRequest(ctx, 2); return err }},
		{"PullRequestsByHead", "pull-requests: read", func(c *github.Client) error { _, err := c.PullRequestsByHead(ctx, "octocat", "changes"); return err }},
		{"Files", "pull-requests: read", func(c *github.Client) error { _, _, err := c.Files(ctx, 2); return err }},
		{"Comments", "pull-requests: read", func(c *github.Client) error { _, err := c.Comments(ctx, 2); return err }},
		{"Comment", "pull-requests: read", func(c *github.Client) error { _, err := c.Comment(ctx, id); return err }},
		{"CreateComment", "pull-requests: write", func(c *github.Client) error { _, err := c.CreateComment(ctx, 2, "x"); return err }},
		{"UpdateComment", "pull-requests: write", func(c *github.Client) error { _, err := c.UpdateComment(ctx, id, "x"); return err }},
		{"React", "pull-requests: write", func(c *github.Client) error { return c.AddReaction(ctx, id, "eyes") }},
		{"ReviewComments", "pull-requests: read", func(c *github.Client) error { _, err := c.ReviewComments(ctx, 2); return err }},
		{"CreateReview", "pull-requests: write", func(c *github.Client) error {
			_, err := c.CreateReview(ctx, 2, github.NewReview{Commit: head, Body: "x"})
			return err
		}},
		{"UpdateReviewComment", "pull-requests: write", func(c *github.Client) error { return c.UpdateReviewComment(ctx, remark, "x") }},
		{"DeleteReviewComment", "pull-requests: write", func(c *github.Client) error { return c.DeleteReviewComment(ctx, remark) }},
		{"WorkflowRun", "actions: read", func(c *github.Client) error { _, err := c.WorkflowRun(ctx, 7); return err }},
		{"CountWorkflowRuns", "actions: read", func(c *github.Client) error {
			_, err := c.CountWorkflowRuns(ctx, []string{"issue_comment"}, "", time.Now())
			return err
		}},
		{"Artifacts", "actions: read", func(c *github.Client) error { _, err := c.Artifacts(ctx, 7); return err }},
		{"Download", "actions: read", func(c *github.Client) error { _, err := c.DownloadArtifact(ctx, 8, 100); return err }},
		{"CreateCheckRun", "checks: write", func(c *github.Client) error {
			_, err := c.CreateCheckRun(ctx, github.CheckRun{Name: "x", HeadSHA: head})
			return err
		}},
		{"DeleteComment", "pull-requests: write", func(c *github.Client) error { return c.DeleteComment(ctx, id) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.do(dial(t, s, "none"))
			var stop *proposal.StopError
			if !errors.As(err, &stop) || !strings.Contains(stop.Hint, "`permissions: {"+test.need+"}`") {
				t.Fatalf("got %v", err)
			}
			want := map[bool]string{true: "github.permission", false: "github.not-found"}[strings.HasSuffix(test.need, "write")]
			if stop.Code != want {
				t.Errorf("got %v, want %s", err, want)
			}
			s.AddWorkflowToken("granted", strings.ReplaceAll(test.need, " ", ""))
			if err := test.do(dial(t, s, "granted")); err != nil {
				t.Errorf("with %s: %v", test.need, err)
			}
		})
	}
}

// The fake misbehaves: each call returns the right result or an error, and no write
// is made twice.
func TestMisbehaviour(t *testing.T) {
	lanetest.SkipShort(t)
	const create, list = "issues/create-comment", "issues/list-comments"
	tests := []struct {
		name     string
		fault    githubtest.Fault
		created  github.Kind // of CreateComment
		listed   github.Kind // of Comments
		comments int         // that exist in the end
	}{
		{"500 before", githubtest.Fault{Op: create, Kind: githubtest.Answer}, github.Uncertain, "", 0},
		{"502 after the work", githubtest.Fault{Op: create, Kind: githubtest.AnswerAfter}, github.Uncertain, "", 1},
		{"reset before", githubtest.Fault{Op: create, Kind: githubtest.ResetBefore}, github.Uncertain, "", 0},
		{"reset after the work", githubtest.Fault{Op: create, Kind: githubtest.ResetAfter}, github.Uncertain, "", 1},
		{"truncated", githubtest.Fault{Op: create, Kind: githubtest.Truncate}, github.Uncertain, "", 1},
		{"cut", githubtest.Fault{Op: create, Kind: githubtest.Cut}, github.Uncertain, "", 1},
		{"primary limit", githubtest.Fault{Op: create, Kind: githubtest.PrimaryLimit, Delay: 30 * time.Second}, "", "", 1},
		{"primary limit, 429", githubtest.Fault{Op: create, Kind: githubtest.PrimaryLimit, Delay: 30 * time.Second, Status: 429}, "", "", 1},
		{"primary limit for an hour", githubtest.Fault{Op: create, Kind: githubtest.PrimaryLimit, Delay: time.Hour}, github.RateLimited, "", 0},
		{"secondary limit", githubtest.Fault{Op: create, Kind: githubtest.SecondaryLimit, Delay: 30 * time.Second}, "", "", 1},
		{"secondary limit without a time", githubtest.Fault{Op: create, Kind: githubtest.SecondaryLimit, Status: 429}, "", "", 1},
		{"lists: 500s", githubtest.Fault{Op: list, Kind: githubtest.Answer, Count: 3}, "", "", 1},
		{"lists: resets", githubtest.Fault{Op: list, Kind: githubtest.ResetAfter, Skip: 1, Count: 2}, "", "", 1},
		{"lists: truncated", githubtest.Fault{Op: list, Kind: githubtest.Truncate, Skip: 1}, "", "", 1},
		{"lists: cut for ever", githubtest.Fault{Op: list, Kind: githubtest.Cut, Count: -1}, "", github.Unavailable, 1},
		{"lists: a page twice", githubtest.Fault{Op: list, Kind: githubtest.DuplicatePage, Skip: 1}, "", "", 1},
		{"lists: a loop", githubtest.Fault{Op: list, Kind: githubtest.LinkLoop}, "", github.Malformed, 1},
		{"lists: away", githubtest.Fault{Op: list, Kind: githubtest.LinkAway}, "", "", 1},
	}
	for _, test := range sample.EveryNth(t, tests, 1, 6) {
		t.Run(test.name, func(t *testing.T) {
			s, c := fake(t, githubtest.Options{}, rights...)
			for i := range 230 {
				s.AddComment(2, "octocat", fmt.Sprint(i))
			}
			s.InjectFault(test.fault)
			_, err := c.CreateComment(context.Background(), 2, "hello")
			if github.KindOf(err) != test.created {
				t.Errorf("created: %v, want %q", err, test.created)
			}
			comments, err := c.Comments(context.Background(), 2)
			if github.KindOf(err) != test.listed {
				t.Errorf("listed: %v, want %q", err, test.listed)
			}
			if test.listed == "" && len(comments) != 230+test.comments {
				t.Errorf("listed %d comments", len(comments))
			}
			if n := len(s.CommentsBy(2, githubtest.ActionsBot)); n != test.comments {
				t.Errorf("%d comments were written, want %d", n, test.comments)
			}
		})
	}
}

// GitHub's limits as GitHub reports them: a comment that is too long, a locked
// conversation, and a repeated read that does not count.
func TestGitHubsWords(t *testing.T) {
	s, c := fake(t, githubtest.Options{}, rights...)
	ctx := context.Background()
	_, err := c.CreateComment(ctx, 2, strings.Repeat("x", 65537))
	if github.KindOf(err) != github.Invalid || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
	s.ChangePullRequest(2, func(pr *githubtest.PR) { pr.Locked = true })
	s.AddWorkflowToken("reader", "pull-requests:write")
	if _, err := dial(t, s, "reader").CreateComment(ctx, 2, "x"); github.KindOf(err) != github.Locked {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if _, err := c.PullRequest(ctx, 2); err != nil {
			t.Error(err)
		}
	}
	var status []int
	for _, r := range s.RequestsFor("pulls/get") {
		status = append(status, r.Status)
	}
	if diff := cmp.Diff([]int{200, 304}, status); diff != "" {
		t.Error(diff)
	}
}

// The token is sent only to the API.
func TestTokenStaysHome(t *testing.T) {
	s, c := fake(t, githubtest.Options{}, rights...)
	s.AddRun(githubtest.Run{ID: 7, Event: "pull_request", HeadSHA: head})
	s.AddArtifact(githubtest.Artifact{ID: 8, Run: 7, Name: "fumehood", Data: []byte("PK")})
	if _, err := c.DownloadArtifact(context.Background(), 8, 100); err != nil {
		t.Fatal(err)
	}
	blobs := 0
	for _, r := range s.Requests() {
		if r.Op == "blob" {
			blobs++
		}
		if (r.Token == workflowToken) == (r.Op == "blob") {
			t.Errorf("%s was sent the token %q", r.Op, r.Token)
		}
	}
	if blobs != 1 {
		t.Errorf("the blob store got %d requests", blobs)
	}
}

// Only the runs of one workflow count for its budget, not those of other workflows
// that comments start.
func TestCountOneWorkflow(t *testing.T) {
	s := githubtest.New(t, githubtest.Options{})
	s.AddWorkflowToken("token", "actions:read")
	s.AddRun(githubtest.Run{Event: "issue_comment", Path: ".github/workflows/other.yml", Actor: "octocat"})
	for _, path := range []string{".github/workflows/bot.yml", ".github/workflows/bot.yml@main", ".github/workflows/bot.yml.yml", ".github/workflows/other.yml"} {
		s.AddRun(githubtest.Run{Event: "issue_comment", Path: path})
	}
	c, err := github.New(github.Options{BaseURL: s.URL, Token: "token", Repository: "Codertocat/Hello-World"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.CountWorkflowRuns(t.Context(), []string{"issue_comment"}, ".github/workflows/bot.yml", time.Now().Add(-time.Hour))
	if err != nil || counted(n) != 2 || len(s.Requests()) != 1 {
		t.Errorf("counted %v, %v by %d requests; want 2 by one", n, err, len(s.Requests()))
	}
	s.AddRun(githubtest.Run{Event: "pull_request", Path: ".github/workflows/bot.yml"})
	s.AddRun(githubtest.Run{Event: "check_run", Path: ".github/workflows/bot.yml"})
	n, err = c.CountWorkflowRuns(t.Context(), []string{"issue_comment", "check_run"}, ".github/workflows/bot.yml", time.Now().Add(-time.Hour))
	if err != nil || counted(n) != 3 {
		t.Errorf("two events: counted %v, %v; want 3", n, err)
	}
	before := len(s.Requests())
	n, err = c.CountWorkflowRuns(t.Context(), []string{"issue_comment", "check_run"}, ".github/workflows/unknown.yml", time.Now().Add(-time.Hour))
	if err != nil || counted(n) != 0 || len(s.Requests()) != before+3 {
		t.Errorf("a workflow that GitHub does not know: counted %v, %v", n, err)
	}
}

// The account and the default branch are those that the four requests return.
func TestReadAccountAndBranch(t *testing.T) {
	for login, kind := range map[string]string{githubtest.ActionsBot: "Bot", "our-reviews[bot]": "Bot", "mona": "User"} {
		s := githubtest.New(t, githubtest.Options{})
		s.AddUser(githubtest.User{Login: login, ID: 77})
		s.AddPR(githubtest.PR{Number: 2}) // and so its base
		s.AddToken("token", githubtest.Token{Login: login, Permissions: map[string]string{"contents": "read"}})
		c, err := github.New(github.Options{BaseURL: s.URL, Token: "token", Repository: "Codertocat/Hello-World"})
		if err != nil {
			t.Fatal(err)
		}
		account, tip, err := c.ReadAccountAndBranch(t.Context())
		if err != nil || account != (github.Author{Login: login, ID: 77, Type: kind}) || len(s.Requests()) != 1 {
			t.Errorf("%s: got %+v, %v by %d requests", login, account, err, len(s.Requests()))
		}
		wantTip, err := c.DefaultBranch(t.Context())
		wantAccount, accountErr := c.Author(t.Context())
		if tip != wantTip || account != wantAccount || err != nil || accountErr != nil {
			t.Errorf("%s: got %+v, %+v, want %+v, %+v (%v, %v)", login, account, tip, wantAccount, wantTip, err, accountErr)
		}
		s.InjectFault(githubtest.Fault{Op: "graphql", Kind: githubtest.Answer, Status: 502, Count: -1})
		before := len(s.Requests())
		if _, _, err := c.ReadAccountAndBranch(t.Context()); github.KindOf(err) != github.Unavailable || len(s.Requests()) != before+1 {
			t.Errorf("%s: %v after %d requests, want one", login, err, len(s.Requests())-before)
		}
	}
}

func counted(by map[github.Author]int) int {
	n := 0
	for _, count := range by {
		n += count
	}
	return n
}
