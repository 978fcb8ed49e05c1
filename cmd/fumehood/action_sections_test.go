// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// inJob returns the variables of a job of a workflow.
func inJob(workflow, name string, env ...string) []string {
	return append([]string{"GITHUB_WORKFLOW_REF=" + hub + "/.github/workflows/" + workflow + "@refs/pull/2/merge", "GITHUB_JOB=" + name}, env...)
}

const (
	redPlan   = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: red, run: grep -q nothing README.md}\n"
	greenPlan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: green, run: grep -q Hello README.md}\n"
)

// verdict is the first heading of the comment.
func (w *world) verdict() string {
	w.t.Helper()
	for line := range strings.Lines(w.comment().Body) {
		if strings.HasPrefix(line, "## ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Three entries of a merge queue have check runs on their own commits, and change no comment.
func TestActionMergeQueueOfThree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.permit("contents:read", "pull_requests:write", "checks:write")
	commits := []string{w.head, w.base, w.commit(w.repo, "third", w.base, baseFiles)}
	w.gitIn(w.repo, "update-ref", "refs/heads/gh-readonly-queue/master/pr-4", commits[2])
	for i, plan := range []string{redPlan, greenPlan, greenPlan} {
		event := w.group(func(p map[string]any) {
			group := p["merge_group"].(map[string]any)
			group["head_sha"], group["head_ref"] = commits[i], fmt.Sprintf("refs/heads/gh-readonly-queue/master/pr-%d-%s", i+2, w.base)
		})
		s := w.act("merge_group", event, append(inJob("ci.yml", "unit"), plan, "INPUT_CHECK_RUN=true", "GITHUB_SHA="+commits[i])...)
		checks := w.gh.CheckRuns(commits[i])
		if want := []string{"failure", "success", "success"}[i]; len(checks) != 1 || checks[0].Name != "fumehood / ci / unit" || checks[0].Conclusion != want {
			t.Errorf("entry %d: %+v\n%s", i, checks, s.log)
		}
	}
	if n := len(w.gh.CommentsBy(prNumber, githubtest.ActionsBot)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

// A reviewer that proposes nothing is a quiet, green line beside CI's section, without annotation. One whose
// job failed is reported as that.
func TestActionReviewerProposesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	opened := w.event("pull_request.opened", nil)
	w.act("pull_request", opened, append(inJob("ci.yml", "unit"), redPlan)...)
	s := w.act("pull_request", opened, append(inJob("review.yml", "run"), `INPUT_PLAN={"schema":"fumehood.plan/v1","proposals":[]}`, "INPUT_REVIEWER_RESULT=success")...)
	if s.code != exitOK || s.outputs["conclusion"] != "success" || strings.Contains(s.log, "::error") || strings.Contains(s.log, "::warning") || strings.Contains(s.log, "::notice") {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	if got := w.verdict(); got != "## ❌ fumehood: 1 failed" {
		t.Errorf("%q", got)
	}
	want(t, "comment", w.comment().Body, "### ➖ `review.yml / run`: no commands were proposed\n", "### ❌ `ci.yml / unit`: 1 failed\n")
	s = w.act("pull_request", opened, append(inJob("review.yml", "run"), "INPUT_PLAN=", "INPUT_REVIEWER_RESULT=failure")...)
	if s.outputs["conclusion"] != "error" {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "### 🛑 `review.yml / run` stopped: nothing ran\n", "Nothing ran: the reviewer&#39;s job failed.", "### ❌ `ci.yml / unit`: 1 failed\n")
	want(t, "log", s.log, "the reviewer's job failed")
}
