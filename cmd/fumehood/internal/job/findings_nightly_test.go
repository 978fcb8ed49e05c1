// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// In a pull request of the same repository one job verifies the findings and posts them, once,
// however often it runs.
func TestNightlyActionReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for range 2 {
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+badFindings)
		if s.Code != cli.Refused || s.Outputs["conclusion"] != "failure" || s.Outputs["verified"] != "2" || s.Outputs["artifact-name"] != "review-of-fumehood-fumehood" {
			t.Fatalf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
		}
		w.checkPosted(s.Log)
		jobtest.CheckContains(t, "summary", s.Summary, "2 verified findings of 5", w.Head[:12])
		if logs, _ := filepath.Glob(filepath.Join(s.Outputs["artifact-path"], "logs", "*.jsonl")); len(logs) < 3 {
			t.Errorf("%d logs", len(logs))
		}
	}
	file := filepath.Join(w.Dir, "none.json")
	w.must(os.WriteFile(file, []byte(`{"schema":"fumehood.findings/v1","findings":[]}`), 0o644))
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+file)
	if s.Code != cli.OK || s.Outputs["verified"] != "0" {
		t.Errorf("no findings: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "The reviewer has no findings")
}

// After a push, only findings on lines that have changed are new. One that is fixed is marked.
func TestNightlyActionReviewAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	act := func() jobtest.Step {
		return w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+badFindings+`  - id: late
    file: notes/new.txt
    line: 2
    claim: found too late
    reproducer:
      run: test ! -e notes/new.txt || exit 3
  - id: new
    file: added.txt
    line: 1
    claim: the file is new
    reproducer:
      run: test ! -e added.txt
`)
	}
	act()
	before := len(w.GH.ReviewComments(jobtest.PrNumber))
	w.GH.RemoveReviews(jobtest.PrNumber)
	w.Head = w.Commit(w.Repo, "fix", w.Head, jobtest.MergeFiles(jobtest.HeadFiles, map[string]string{"greet.sh": "echo hello\n", "added.txt": "x\n"}))
	w.GitIn(w.Repo, "update-ref", "refs/pull/2/head", w.Head)
	w.GH.MoveHead(jobtest.PrNumber, w.Head)
	s := act()
	var paths []string
	for _, c := range w.GH.ReviewComments(jobtest.PrNumber) {
		paths = append(paths, c.Path)
	}
	if before != 2 || strings.Join(paths, " ") != "added.txt" {
		t.Errorf("%d comments, then on %q\n%s", before, paths, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "was reviewed before", "found too late")
}

// On a fork's pull request, the job that runs code posts nothing, whatever its token, and a job of
// the workflow that a maintainer's comment started posts what it left.
func TestNightlyBotFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review")
	payload := w.CommentEvent(id)
	request := "INPUT_REQUEST=" + w.actPhase(payload, "trigger").Outputs["request"]
	ran := w.actPhase(payload, "review", request, "INPUT_FINDINGS="+badFindings, "INPUT_FAIL_ON=error")
	if ran.Code != cli.OK || ran.Outputs["verified"] != "2" || len(w.GH.Reviews(jobtest.PrNumber)) != 0 {
		t.Fatalf("exit %d, outputs %q\n%s", ran.Code, ran.Outputs, ran.Log)
	}
	w.RunID++
	w.UploadArtifact(ran, nil)
	w.RunID--
	for range 2 {
		s := w.actPhase(payload, "report", request, "INPUT_FAIL_ON=error")
		if s.Code != cli.OK || s.Outputs["verified"] != "2" {
			t.Fatalf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
		}
		w.checkPosted(s.Log)
	}
	if got := jobtest.ListReactions(w.GH, id); got != "eyes rocket -1" {
		t.Errorf("reactions %q", got)
	}
	if strings.Contains(w.BotComment().Body, "was accepted for commit") {
		t.Errorf("the answer is still there:\n%s", w.BotComment().Body)
	}
}
