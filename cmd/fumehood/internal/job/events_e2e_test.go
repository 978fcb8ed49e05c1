// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// A merge queue's commit is run, by the policy of the default branch and of the branch that it
// is to be merged to, and gets a check run and no comment.
func TestE2EActionMergeGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.SetPermissions("contents:read", "checks:write")
	w.Push("master", denyRule("cat"))
	w.Push("release", denyRule("grep"))
	event := w.MergeGroupEvent(func(p map[string]any) { p["merge_group"].(map[string]any)["base_ref"] = "refs/heads/release" })
	plan := jobtest.CatPlan + "  - {id: search, run: grep -c Hello README.md}\n  - {id: list, run: ls notes}\n"
	s := w.RunStep("merge_group", event, plan, "INPUT_CHECK_RUN=true", "INPUT_POLICY_BRANCHES=release", "GITHUB_SHA="+w.Head)
	if s.Outputs["conclusion"] != "denied" || s.Outputs["denied"] != "2" || s.Outputs["allowed"] != "1" || s.Outputs["sha"] != w.Head || len(w.GH.Comments(jobtest.PrNumber)) != 0 {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "summary", s.Summary, "house.cat", "house.grep", "new.txt")
	if runs := w.GH.CheckRuns(w.Head); len(runs) != 1 || runs[0].Conclusion == "success" {
		t.Errorf("check runs %+v", runs)
	}
	if s := w.RunStep("merge_group", event, plan); s.Code != cli.Stopped || s.Outputs["allowed"] != "0" || !strings.Contains(s.Log, "event.mismatch") {
		t.Errorf("a job for another commit: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}

// An event that is not supported ends green with a notice, and runs nothing.
func TestE2EActionUnsupportedEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for _, event := range []string{"create", "schedule", "release"} {
		s := w.RunStep(event, []byte(`{"schedule": "5 4 * * *"}`))
		if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" || !strings.Contains(s.Log, "::notice::unsupported event") || len(w.GH.Requests()) > 0 {
			t.Errorf("%s: exit %d, outputs %q\n%s", event, s.Code, s.Outputs, s.Log)
		}
	}
}

// A pull request that was closed after its event needs no run. A draft is treated as any other.
func TestE2EActionClosedAndDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	if s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.draft", nil), jobtest.CatPlan); s.Outputs["conclusion"] != "success" {
		t.Errorf("a draft: outputs %q\n%s", s.Outputs, s.Log)
	}
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.State = "closed" })
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), jobtest.CatPlan)
	if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" || s.Outputs["allowed"] != "0" {
		t.Errorf("closed: exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}

// reviewEvent is the event of a review, or of a comment of one, by login.
func (w world) reviewEvent(event, login, body string, id int64, at time.Time) []byte {
	name, field := "pull_request_review.submitted", "review"
	if event == "pull_request_review_comment" {
		name, field = "pull_request_review_comment.created", "comment"
	}
	return w.EventPayload(name, func(p map[string]any) {
		p["repository"].(map[string]any)["id"], p["repository"].(map[string]any)["full_name"] = jobtest.HubID, jobtest.Hub
		text := p[field].(map[string]any)
		user := map[string]any{"login": login, "id": w.GH.UserID(login), "type": jobtest.AccountType(login)}
		text["id"], text["body"], text["user"], p["sender"] = id, body, user, user
		for _, name := range []string{"submitted_at", "created_at", "updated_at"} {
			text[name] = at.UTC().Format(time.RFC3339)
		}
	})
}

// A review and a comment of a review carry commands like other comments. Their ids are not
// compared with those of comments: the later answer is shown.
func TestE2EBotReviewBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	at := time.Now()
	for event, file := range map[string]string{"pull_request_review": "README.md", "pull_request_review_comment": "greet.sh"} {
		for login, allowed := range map[string]string{"Codertocat": "1", "octocat": "0", "mallory": "0"} {
			at = at.Add(10 * time.Second)
			s := w.RunStep(event, w.reviewEvent(event, login, "/fumehood run grep -c o "+file, 7, at), "INPUT_PLAN=")
			if s.Code != cli.OK || s.Outputs["allowed"] != allowed {
				t.Errorf("%s by %s: exit %d, outputs %q\n%s", event, login, s.Code, s.Outputs, s.Log)
			}
		}
		jobtest.CheckContains(t, "comment", w.BotComment().Body, "grep -c o "+file)
	}
	at = at.Add(10 * time.Second)
	w.Ahead.Add(int64(time.Until(at) + time.Second))
	w.AskBot("Codertocat", "/fumehood help")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "/fumehood explain")
	w.RunStep("pull_request_review", w.reviewEvent("pull_request_review", "Codertocat", "/fumehood explain nothing", 8, at.Add(time.Minute)))
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "artifacts of the last run")
	if s := w.RunStep("pull_request_review", w.reviewEvent("pull_request_review", "Codertocat", "Looks good.", 9, at)); s.Outputs["conclusion"] != "skipped" {
		t.Errorf("a review without a command: outputs %q\n%s", s.Outputs, s.Log)
	}
}

// On a fork's pull request the token of a review's workflow is read-only: nothing runs, and a
// notice says where to write the command.
func TestE2EBotReviewBodyOnFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:read")
	for _, phase := range []string{"auto", "trigger", "run"} {
		s := w.RunStep("pull_request_review", w.reviewEvent("pull_request_review", "Codertocat", "/fumehood run cat README.md", 7, time.Now()), "INPUT_PHASE="+phase)
		if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" || !strings.Contains(s.Log, "in a comment on the pull request") {
			t.Errorf("%s: exit %d, outputs %q\n%s", phase, s.Code, s.Outputs, s.Log)
		}
	}
}
