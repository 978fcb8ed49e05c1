// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
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

// No later green job replaces the red one of the same commit: not another job or workflow, a named plan, a
// bot's run, or an older run. A newer run of the same job does. There is one comment, and each has a check
// run of its own.
func TestActionSections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read", "checks:write")
	opened := w.event("pull_request.opened", nil)
	run := func(env []string, more ...string) step {
		return w.act("pull_request", opened, append(append(env, "INPUT_CHECK_RUN=true"), more...)...)
	}
	run(inJob("ci.yml", "unit"), redPlan)
	red := w.runID
	if got := w.verdict(); got != "## ❌ fumehood: 1 failed" {
		t.Fatalf("%q\n%s", got, w.said)
	}
	for _, tt := range []struct {
		name string
		do   func()
		want string
		part string
	}{
		{"another job", func() { run(inJob("ci.yml", "lint"), greenPlan) }, "## ❌ fumehood: 1 failed, 1 succeeded", "### ✅ `ci.yml / lint`: 1 succeeded"},
		{"another workflow", func() { run(inJob("nightly.yml", "unit"), greenPlan) }, "## ❌ fumehood: 1 failed, 2 succeeded", "### ✅ `nightly.yml / unit`: 1 succeeded"},
		{"a named plan", func() { run(inJob("ci.yml", "unit", "INPUT_NAME=web"), greenPlan, "INPUT_WORKING_DIRECTORY=notes") }, "## ❌ fumehood: 2 failed, 2 succeeded", "### ❌ `ci.yml / unit / web`: 1 failed"},
		{"a named plan again", func() { run(inJob("ci.yml", "unit", "INPUT_NAME=web"), greenPlan) }, "## ❌ fumehood: 1 failed, 3 succeeded", "### ✅ `ci.yml / unit / web`: 1 succeeded"},
		{"a bot's run", func() { w.ask("Codertocat", "/fumehood run cat README.md") }, "## ❌ fumehood: 1 failed, 4 succeeded", "### ✅ run requested by `Codertocat`: 1 succeeded"},
		{"the same attempt", func() { run(inJob("ci.yml", "unit"), greenPlan, fmt.Sprint("GITHUB_RUN_ID=", red)) }, "## ❌ fumehood: 1 failed, 4 succeeded", "### ❌ `ci.yml / unit`: 1 failed"},
		{"a newer run with a smaller id", func() { w.later(); run(inJob("ci.yml", "unit"), greenPlan, fmt.Sprint("GITHUB_RUN_ID=", red-900)) }, "## ✅ fumehood: 5 succeeded", "### ✅ `ci.yml / unit`: 1 succeeded"},
		{"run again, and red", func() {
			w.later()
			run(inJob("ci.yml", "unit"), redPlan, fmt.Sprint("GITHUB_RUN_ID=", red), "GITHUB_RUN_ATTEMPT=2")
		}, "## ❌ fumehood: 1 failed, 4 succeeded", "### ❌ `ci.yml / unit`: 1 failed"},
	} {
		tt.do()
		if got := w.verdict(); got != tt.want || !strings.Contains(w.comment().Body, tt.part+"\n") {
			t.Errorf("%s: %q, want %q\n%s", tt.name, got, tt.want, w.comment().Body)
		}
	}
	var names []string
	for _, check := range w.gh.CheckRuns(w.head) {
		names = append(names, check.Name)
	}
	slices.Sort(names)
	want := []string{"fumehood / ci / lint", "fumehood / ci / unit", "fumehood / ci / unit / web", "fumehood / nightly / unit"}
	if got := slices.Compact(names); !slices.Equal(got, want) {
		t.Errorf("check runs %q", got)
	}
	w.gh.RemoveComment(w.comment().ID)
	run(inJob("ci.yml", "unit"), greenPlan)
	if got := w.verdict(); got != "## ✅ fumehood: 1 succeeded" {
		t.Errorf("after the comment was deleted: %q", got)
	}
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
