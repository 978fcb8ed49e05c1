// SPDX-License-Identifier: Apache-2.0

//go:build linux && nightly

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In a pull request of the same repository one job verifies the findings and posts them, once,
// however often it runs.
func TestNightlyActionReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for range 2 {
		s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+badFindings)
		if s.code != exitRefused || s.outputs["conclusion"] != "failure" || s.outputs["verified"] != "2" || s.outputs["artifact-name"] != "review-of-fumehood-fumehood" {
			t.Fatalf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
		}
		w.checkPosted(s.log)
		want(t, "summary", s.summary, "2 verified findings of 5", w.head[:12])
		if logs, _ := filepath.Glob(filepath.Join(s.outputs["artifact-path"], "logs", "*.jsonl")); len(logs) < 3 {
			t.Errorf("%d logs", len(logs))
		}
	}
	file := filepath.Join(w.dir, "none.json")
	w.must(os.WriteFile(file, []byte(`{"schema":"fumehood.findings/v1","findings":[]}`), 0o644))
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+file)
	if s.code != exitOK || s.outputs["verified"] != "0" {
		t.Errorf("no findings: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "The reviewer has no findings")
}

// After a push, only findings on lines that have changed are new. One that is fixed is marked.
func TestNightlyActionReviewAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	act := func() step {
		return w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PHASE=review", "INPUT_PLAN=", "INPUT_FINDINGS="+badFindings+`  - id: late
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
	before := len(w.gh.ReviewComments(prNumber))
	w.gh.Forget(prNumber)
	w.head = w.commit(w.repo, "fix", w.head, merged(headFiles, map[string]string{"greet.sh": "echo hello\n", "added.txt": "x\n"}))
	w.gitIn(w.repo, "update-ref", "refs/pull/2/head", w.head)
	w.gh.Move(prNumber, w.head)
	s := act()
	var paths []string
	for _, c := range w.gh.ReviewComments(prNumber) {
		paths = append(paths, c.Path)
	}
	if before != 2 || strings.Join(paths, " ") != "added.txt" {
		t.Errorf("%d comments, then on %q\n%s", before, paths, s.log)
	}
	want(t, "comment", w.comment().Body, "was reviewed before", "found too late")
}

// On a fork's pull request, the job that runs code posts nothing, whatever its token, and a job of
// the workflow that a maintainer's comment started posts what it left.
func TestNightlyBotFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood review")
	payload := w.commentEvent(id)
	request := "INPUT_REQUEST=" + w.phase(payload, "trigger").outputs["request"]
	ran := w.phase(payload, "review", request, "INPUT_FINDINGS="+badFindings, "INPUT_FAIL_ON=error")
	if ran.code != exitOK || ran.outputs["verified"] != "2" || len(w.gh.Reviews(prNumber)) != 0 {
		t.Fatalf("exit %d, outputs %q\n%s", ran.code, ran.outputs, ran.log)
	}
	w.runID++
	w.upload(ran, nil)
	w.runID--
	for range 2 {
		s := w.phase(payload, "report", request, "INPUT_FAIL_ON=error")
		if s.code != exitOK || s.outputs["verified"] != "2" {
			t.Fatalf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
		}
		w.checkPosted(s.log)
	}
	if got := reactions(w.gh, id); got != "eyes rocket -1" {
		t.Errorf("reactions %q", got)
	}
	if strings.Contains(w.comment().Body, "was accepted for commit") {
		t.Errorf("the answer is still there:\n%s", w.comment().Body)
	}
}
