// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// A phase runs one job of the workflow that a comment started.
func (w *world) phase(payload []byte, phase string, env ...string) step {
	w.t.Helper()
	w.permit("contents:read", "pull_requests:write", "actions:read")
	if phase == "run" {
		w.permit("contents:read", "pull_requests:read")
	}
	s := w.act("issue_comment", payload, append([]string{"INPUT_PHASE=" + phase, "INPUT_REVIEWER=true", "INPUT_PLAN="}, env...)...)
	w.runID--
	return s
}

// On a fork's pull request, /fumehood review by someone with write permission pins the commit,
// and the plan that the reviewer's job proposes runs on it, decided as any plan.
func TestE2EBotReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	payload := w.commentEvent(w.gh.AddComment(prNumber, "Codertocat", "/fumehood review"))
	asked := w.phase(payload, "trigger")
	request := "INPUT_REQUEST=" + asked.outputs["request"]
	if asked.outputs["run"] != "true" || asked.outputs["command"] != "review" || asked.outputs["head"] != w.head || !strings.Contains(request, `"plans":null`) {
		t.Fatalf("outputs %q\n%s", asked.outputs, asked.log)
	}
	if s := w.phase(payload, "run", request); s.code != exitStopped || s.outputs["allowed"] != "0" {
		t.Errorf("no plan: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	w.phase(payload, "report", request, "INPUT_REVIEWER_RESULT=failure")
	want(t, "comment", w.comment().Body, "Nothing ran: the reviewer&#39;s job failed.")
	w.phase(payload, "report", request, "INPUT_REVIEWER_RESULT=success")
	want(t, "comment", w.comment().Body, "report.missing")
	w.runID += 10
	nothing := w.phase(payload, "run", request, "INPUT_REVIEWER_RESULT=success", `INPUT_PLAN={"schema":"fumehood.plan/v1","proposals":[]}`)
	w.runID++
	w.upload(nothing, nil)
	w.runID--
	if s := w.phase(payload, "report", request, "INPUT_REVIEWER_RESULT=success"); s.code != exitOK || s.outputs["conclusion"] != "success" {
		t.Errorf("nothing proposed: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "run requested by `Codertocat`: no commands were proposed\n")

	w.runID += 10
	payload = w.commentEvent(w.gh.AddComment(prNumber, "Codertocat", "/fumehood review"))
	request = "INPUT_REQUEST=" + w.phase(payload, "trigger").outputs["request"]
	ran := w.phase(payload, "run", request, "INPUT_PLAN="+goodPlan)
	if ran.outputs["allowed"] != "2" || ran.outputs["denied"] != "1" {
		t.Fatalf("outputs %q\n%s", ran.outputs, ran.log)
	}
	w.runID++
	w.upload(ran, nil)
	w.runID--
	w.phase(payload, "report", request)
	body := w.comment().Body
	want(t, "comment", body, "grep -c o notes/new.txt", "curl", w.head[:12])
	if strings.Contains(body, "Self-reported") || strings.Contains(body, "report.missing") {
		t.Errorf("the comment has an older result, or doubts the workflow of the default branch:\n%s", body)
	}

	w.gh.Move(prNumber, githubtest.SHA("pushed meanwhile"))
	if s := w.phase(payload, "run", request, "INPUT_PLAN="+goodPlan); s.code != exitStopped || s.outputs["allowed"] != "0" || !strings.Contains(s.log, "head.moved") {
		t.Errorf("the head moved: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
}

// A review needs a reviewer in the workflow and a person with write permission. A request for a
// review cannot carry plans, nor another request lack them.
func TestE2EBotReviewRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.gh.Permit("hubot", "triage")
	for _, login := range []string{"hubot", "octocat", "mallory", "reviewer[bot]"} {
		payload := w.commentEvent(w.gh.AddComment(prNumber, login, "/fumehood review"))
		if s := w.phase(payload, "trigger"); s.outputs["run"] == "true" || s.outputs["request"] != "" {
			t.Errorf("%s: outputs %q\n%s", login, s.outputs, s.log)
		}
	}
	payload := w.commentEvent(w.gh.AddComment(prNumber, "Codertocat", "/fumehood review"))
	if s := w.phase(payload, "trigger", "INPUT_REVIEWER=false"); s.outputs["run"] == "true" {
		t.Errorf("without a reviewer: outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "no AI reviewer")
	w.later()
	good := w.phase(payload, "trigger").outputs["request"]
	for name, forged := range map[string]string{
		"plans in a review":  strings.Replace(good, `"plans":null`, `"plans":[{"name":"","document":"x","file":"x"}]`, 1),
		"a run without them": strings.Replace(good, `"command":"review"`, `"command":"run"`, 1),
		"another commit":     strings.Replace(good, w.head, strings.Repeat("ab", 20), 1),
		"another comment":    strings.Replace(good, `"comment":`, `"comment":1`, 1),
	} {
		if s := w.phase(payload, "run", "INPUT_REQUEST="+forged, "INPUT_PLAN="+goodPlan); good == forged || s.code != exitStopped || s.outputs["allowed"] != "0" {
			t.Errorf("%s: exit %d, outputs %q\n%s", name, s.code, s.outputs, s.log)
		}
	}
}
