// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/google/go-github/v62/github"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

const token = "ghs_workflow"

// all are exactly the rights that the workflows of this repository request.
var all = []string{"contents:read", "issues:write", "pull-requests:write", "checks:write", "actions:read"}

func dial(t *testing.T, s *githubtest.Server, token string) *github.Client {
	t.Helper()
	c := github.NewClient(nil)
	if token != "" {
		c = c.WithAuthToken(token)
	}
	base, err := url.Parse(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL = base
	return c
}

const (
	owner = "Codertocat"
	name  = "Hello-World"
)

func TestConversation(t *testing.T) {
	s := githubtest.New(t, githubtest.Options{})
	s.AddWorkflowToken(token, all...)
	pr := s.AddPR(githubtest.PR{Number: 2, Author: "octocat", Files: []githubtest.File{{Path: "README.md", Patch: "@@ -1 +1 @@\n-a\n+b"}}})
	c, ctx := dial(t, s, token), context.Background()

	got, _, err := c.PullRequests.Get(ctx, owner, name, 2)
	if err != nil || got.GetHead().GetSHA() != pr.Head.SHA || got.GetHead().GetRepo().GetFullName() != owner+"/"+name {
		t.Fatalf("got %v, %v", got, err)
	}
	comment, _, err := c.Issues.CreateComment(ctx, owner, name, 2, &github.IssueComment{Body: github.String("hello")})
	if err != nil || comment.GetUser().GetLogin() != githubtest.ActionsBot || comment.GetUser().GetID() != 41898282 {
		t.Fatalf("got %v, %v", comment, err)
	}
	if _, _, err := c.Issues.EditComment(ctx, owner, name, comment.GetID(), &github.IssueComment{Body: github.String("bye")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Reactions.CreateIssueCommentReaction(ctx, owner, name, comment.GetID(), "eyes"); err != nil {
		t.Fatal(err)
	}
	list, _, err := c.Issues.ListComments(ctx, owner, name, 2, nil)
	if err != nil || len(list) != 1 || list[0].GetBody() != "bye" {
		t.Fatalf("got %v, %v", list, err)
	}
	if r := s.Reactions(comment.GetID()); len(r) != 1 || r[0].Content != "eyes" {
		t.Errorf("got %v", r)
	}
}
