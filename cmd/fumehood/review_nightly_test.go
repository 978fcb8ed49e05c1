// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// The reusable workflows are called as other repositories call them: the example for an
// organization from a comment to the results, with its secret, and a plan on a pull request,
// with its inputs.
func TestNightlyActReusable(t *testing.T) {
	m, s := newModel(t), newStage(t, true, nil, nil)
	s.copyReusable()
	s.replaceReviewersOf(filepath.Join(s.action, ".github/workflows/call-review-claude.yml"), m.URL)
	id := s.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")
	r := s.play("organization.yml", "issue_comment", s.CommentEvent(id), s.reviewEnv(m)...)
	if r.code != 0 || len(m.keys) != 1 || m.keys[0] != reviewerKey {
		t.Fatalf("exit %d; the model got %d requests\n%s", r.code, len(m.keys), r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "grep -c o notes/new.txt", s.Head[:12], "denied")
	if got := jobtest.ListReactions(s.GH, id); got != "eyes rocket -1" {
		t.Errorf("reactions %q", got)
	}

	s.must(os.WriteFile(filepath.Join(s.project, ".github/workflows/caller.yml"), []byte(caller), 0o644))
	s.SetPermissions("contents:read", "pull_requests:read")
	r = s.play("caller.yml", "pull_request", s.EventPayload("pull_request.opened.fork", nil))
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.log)
	}
	jobtest.CheckContains(t, "summary", r.summary, "cat notes/new.txt", "1 succeeded")
}
