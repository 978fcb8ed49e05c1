// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
)

// With the key in the job that verifies, the check of the key finds it.
func TestNightlyActFindingsLeak(t *testing.T) {
	answer := hostileAnswer(t)
	m, s := newReviewModel(t, modeltest.ScriptedAnswer{Text: answer}), newStage(t, true, nil, nil)
	s.edit("review.yml", "  verify:\n    needs: [trigger, find]\n", "  verify:\n    needs: [trigger, find]\n    env:\n      LEAKED: ${{ secrets.ANTHROPIC_API_KEY }}\n")
	s.replaceReviewers("review.yml", m.URL)
	id := s.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")
	stop := make(chan struct{})
	watched := s.watch(nil, stop)
	r := s.play("review.yml", "issue_comment", s.CommentEvent(id))
	close(stop)
	if problems := checkKey(<-watched, "find", "verify"); r.code != 0 || len(problems) != 1 || !strings.HasPrefix(problems[0], "job verify: the key was in ") || strings.Contains(problems[0], "runsc") {
		t.Errorf("exit %d; problems %q\n%s", r.code, problems, r.log)
	}
}

// A provider that is down fails no job: the comment says why nothing was reviewed.
func TestNightlyActFindingsNotReviewed(t *testing.T) {
	m, s := newReviewModel(t, modeltest.ScriptedAnswer{Status: 401}), newStage(t, true, nil, nil)
	s.replaceReviewers("review.yml", m.URL)
	r := s.play("review.yml", "issue_comment", s.CommentEvent(s.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")))
	if r.code != 0 || len(s.GH.ReviewComments(jobtest.PrNumber)) != 0 || strings.Contains(r.log, "verify| ") && strings.Contains(r.log, "fumehood: verifying") {
		t.Errorf("exit %d\n%s", r.code, r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "Not reviewed", "the provider answered 401")
}

// A review of a pull request of the same repository, in one job.
func TestNightlyActOwnFindings(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.must(os.WriteFile(filepath.Join(s.project, ".github/workflows/own-review.yml"), []byte(ownReview), 0o644))
	s.must(os.WriteFile(s.path("findings.json"), []byte(modelFindings), 0o644))
	s.SetPermissions("contents:read", "pull_requests:write")
	for range 2 {
		r := s.play("own-review.yml", "pull_request", s.EventPayload("pull_request.opened", nil), "FINDINGS="+s.path("findings.json"))
		if r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.log)
		}
		s.checkReview(r.log)
		jobtest.CheckContains(t, "summary", r.summary, "1 verified finding of 3")
	}
}
