// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// inJob returns the variables of a job of a workflow.
func inJob(workflow, name string, env ...string) []string {
	return append([]string{"GITHUB_WORKFLOW_REF=" + jobtest.Hub + "/.github/workflows/" + workflow + "@refs/pull/2/merge", "GITHUB_JOB=" + name}, env...)
}

const (
	redPlan   = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: red, run: grep -q nothing README.md}\n"
	greenPlan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: green, run: grep -q Hello README.md}\n"
)

// Three entries of a merge queue have check runs on their own commits, and change no comment.
func TestActionMergeQueueOfThree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "checks:write")
	commits := []string{w.Head, w.Base, w.Commit(w.Repo, "third", w.Base, jobtest.BaseFiles)}
	w.GitIn(w.Repo, "update-ref", "refs/heads/gh-readonly-queue/master/pr-4", commits[2])
	for i, plan := range []string{redPlan, greenPlan, greenPlan} {
		event := w.MergeGroupEvent(func(p map[string]any) {
			group := p["merge_group"].(map[string]any)
			group["head_sha"], group["head_ref"] = commits[i], fmt.Sprintf("refs/heads/gh-readonly-queue/master/pr-%d-%s", i+2, w.Base)
		})
		s := w.RunStep("merge_group", event, append(inJob("ci.yml", "unit"), plan, "INPUT_CHECK_RUN=true", "GITHUB_SHA="+commits[i])...)
		checks := w.GH.CheckRuns(commits[i])
		if want := []string{"failure", "success", "success"}[i]; len(checks) != 1 || checks[0].Name != "fumehood / ci / unit" || checks[0].Conclusion != want {
			t.Errorf("entry %d: %+v\n%s", i, checks, s.Log)
		}
	}
	if n := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

// A reviewer that proposes nothing is a quiet, green line beside CI's section, without annotation. One whose
// job failed is reported as that.
func TestActionReviewerProposesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	opened := w.EventPayload("pull_request.opened", nil)
	w.RunStep("pull_request", opened, append(inJob("ci.yml", "unit"), redPlan)...)
	s := w.RunStep("pull_request", opened, append(inJob("review.yml", "run"), `INPUT_PLAN={"schema":"fumehood.plan/v1","proposals":[]}`, "INPUT_REVIEWER_RESULT=success")...)
	if s.Code != cli.OK || s.Outputs["conclusion"] != "success" || strings.Contains(s.Log, "::error") || strings.Contains(s.Log, "::warning") || strings.Contains(s.Log, "::notice") {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	if got := w.CommentHeading(); got != "## ❌ fumehood: 1 failed" {
		t.Errorf("%q", got)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "### ➖ `review.yml / run`: no commands were proposed\n", "### ❌ `ci.yml / unit`: 1 failed\n")
	s = w.RunStep("pull_request", opened, append(inJob("review.yml", "run"), "INPUT_PLAN=", "INPUT_REVIEWER_RESULT=failure")...)
	if s.Outputs["conclusion"] != "error" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "### 🛑 `review.yml / run` stopped: nothing ran\n", "Nothing ran: the reviewer&#39;s job failed.", "### ❌ `ci.yml / unit`: 1 failed\n")
	jobtest.CheckContains(t, "log", s.Log, "the reviewer's job failed")
}
