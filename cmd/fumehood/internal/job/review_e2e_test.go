// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// actPhase runs one job of the workflow that a comment started.
func (w world) actPhase(payload []byte, phase string, env ...string) jobtest.Step {
	w.T.Helper()
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	if phase == "run" {
		w.SetPermissions("contents:read", "pull_requests:read")
	}
	s := w.RunStep("issue_comment", payload, append([]string{"INPUT_PHASE=" + phase, "INPUT_REVIEWER=true", "INPUT_PLAN="}, env...)...)
	w.RunID--
	return s
}

// On a fork's pull request, /fumehood review by someone with write permission pins the commit,
// and the plan that the reviewer's job proposes runs on it, decided as any plan.
func TestE2EBotReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review"))
	asked := w.actPhase(payload, "trigger")
	request := "INPUT_REQUEST=" + asked.Outputs["request"]
	if asked.Outputs["run"] != "true" || asked.Outputs["command"] != "review" || asked.Outputs["head"] != w.Head || !strings.Contains(request, `"plans":null`) {
		t.Fatalf("outputs %q\n%s", asked.Outputs, asked.Log)
	}
	if s := w.actPhase(payload, "run", request); s.Code != cli.Stopped || s.Outputs["allowed"] != "0" {
		t.Errorf("no plan: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	w.actPhase(payload, "report", request, "INPUT_REVIEWER_RESULT=failure")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "Nothing ran: the reviewer&#39;s job failed.")
	w.actPhase(payload, "report", request, "INPUT_REVIEWER_RESULT=success")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "report.missing")
	w.RunID += 10
	nothing := w.actPhase(payload, "run", request, "INPUT_REVIEWER_RESULT=success", `INPUT_PLAN={"schema":"fumehood.plan/v1","proposals":[]}`)
	w.RunID++
	w.UploadArtifact(nothing, nil)
	w.RunID--
	if s := w.actPhase(payload, "report", request, "INPUT_REVIEWER_RESULT=success"); s.Code != cli.OK || s.Outputs["conclusion"] != "success" {
		t.Errorf("nothing proposed: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "run requested by `Codertocat`: no commands were proposed\n")

	w.RunID += 10
	payload = w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review"))
	request = "INPUT_REQUEST=" + w.actPhase(payload, "trigger").Outputs["request"]
	ran := w.actPhase(payload, "run", request, "INPUT_PLAN="+jobtest.GoodPlan)
	if ran.Outputs["allowed"] != "2" || ran.Outputs["denied"] != "1" {
		t.Fatalf("outputs %q\n%s", ran.Outputs, ran.Log)
	}
	w.RunID++
	w.UploadArtifact(ran, nil)
	w.RunID--
	w.actPhase(payload, "report", request)
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "grep -c o notes/new.txt", "curl", w.Head[:12])
	if strings.Contains(body, "Self-reported") || strings.Contains(body, "report.missing") {
		t.Errorf("the comment has an older result, or doubts the workflow of the default branch:\n%s", body)
	}

	w.GH.MoveHead(jobtest.PrNumber, githubtest.CommitID("pushed meanwhile"))
	if s := w.actPhase(payload, "run", request, "INPUT_PLAN="+jobtest.GoodPlan); s.Code != cli.Stopped || s.Outputs["allowed"] != "0" || !strings.Contains(s.Log, "head.moved") {
		t.Errorf("the head moved: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}

// A review needs a reviewer in the workflow and a person with write permission. A request for a
// review cannot carry plans, nor another request lack them.
func TestE2EBotReviewRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.GH.SetRole("hubot", "triage")
	for _, login := range []string{"hubot", "octocat", "mallory", "reviewer[bot]"} {
		payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, login, "/fumehood review"))
		if s := w.actPhase(payload, "trigger"); s.Outputs["run"] == "true" || s.Outputs["request"] != "" {
			t.Errorf("%s: outputs %q\n%s", login, s.Outputs, s.Log)
		}
	}
	payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood review"))
	if s := w.actPhase(payload, "trigger", "INPUT_REVIEWER=false"); s.Outputs["run"] == "true" {
		t.Errorf("without a reviewer: outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "no AI reviewer")
	w.AdvanceClock()
	good := w.actPhase(payload, "trigger").Outputs["request"]
	for name, forged := range map[string]string{
		"plans in a review":  strings.Replace(good, `"plans":null`, `"plans":[{"name":"","document":"x","file":"x"}]`, 1),
		"a run without them": strings.Replace(good, `"command":"review"`, `"command":"run"`, 1),
		"another commit":     strings.Replace(good, w.Head, strings.Repeat("ab", 20), 1),
		"another comment":    strings.Replace(good, `"comment":`, `"comment":1`, 1),
	} {
		if s := w.actPhase(payload, "run", "INPUT_REQUEST="+forged, "INPUT_PLAN="+jobtest.GoodPlan); good == forged || s.Code != cli.Stopped || s.Outputs["allowed"] != "0" {
			t.Errorf("%s: exit %d, outputs %q\n%s", name, s.Code, s.Outputs, s.Log)
		}
	}
}
