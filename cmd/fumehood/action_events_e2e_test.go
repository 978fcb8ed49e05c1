// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// A merge queue's commit is run, by the policy of the default branch and of the branch that it
// is to be merged to, and gets a check run and no comment.
func TestE2EActionMergeGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.permit("contents:read", "checks:write")
	w.push("master", denyRule("cat"))
	w.push("release", denyRule("grep"))
	event := w.group(func(p map[string]any) { p["merge_group"].(map[string]any)["base_ref"] = "refs/heads/release" })
	plan := catPlan + "  - {id: search, run: grep -c Hello README.md}\n  - {id: list, run: ls notes}\n"
	s := w.act("merge_group", event, plan, "INPUT_CHECK_RUN=true", "INPUT_POLICY_BRANCHES=release", "GITHUB_SHA="+w.head)
	if s.outputs["conclusion"] != "denied" || s.outputs["denied"] != "2" || s.outputs["allowed"] != "1" || s.outputs["sha"] != w.head || len(w.gh.Comments(prNumber)) != 0 {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "summary", s.summary, "house.cat", "house.grep", "new.txt")
	if runs := w.gh.CheckRuns(w.head); len(runs) != 1 || runs[0].Conclusion == "success" {
		t.Errorf("check runs %+v", runs)
	}
	if s := w.act("merge_group", event, plan); s.code != exitStopped || s.outputs["allowed"] != "0" || !strings.Contains(s.log, "event.mismatch") {
		t.Errorf("a job for another commit: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
}

// An event that is not supported ends green with a notice, and runs nothing.
func TestE2EActionUnsupportedEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for _, event := range []string{"create", "schedule", "release"} {
		s := w.act(event, []byte(`{"schedule": "5 4 * * *"}`))
		if s.code != exitOK || s.outputs["conclusion"] != "skipped" || !strings.Contains(s.log, "::notice::unsupported event") || len(w.gh.Requests()) > 0 {
			t.Errorf("%s: exit %d, outputs %q\n%s", event, s.code, s.outputs, s.log)
		}
	}
}

// A pull request that was closed after its event needs no run. A draft is treated as any other.
func TestE2EActionClosedAndDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	if s := w.act("pull_request", w.event("pull_request.opened.draft", nil), catPlan); s.outputs["conclusion"] != "success" {
		t.Errorf("a draft: outputs %q\n%s", s.outputs, s.log)
	}
	w.gh.Change(prNumber, func(pr *githubtest.PR) { pr.State = "closed" })
	s := w.act("pull_request", w.event("pull_request.opened", nil), catPlan)
	if s.code != exitOK || s.outputs["conclusion"] != "skipped" || s.outputs["allowed"] != "0" {
		t.Errorf("closed: exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
}

// review is the event of a review, or of a comment of one, by login.
func (w *world) review(event, login, body string, id int64, at time.Time) []byte {
	name, field := "pull_request_review.submitted", "review"
	if event == "pull_request_review_comment" {
		name, field = "pull_request_review_comment.created", "comment"
	}
	return w.event(name, func(p map[string]any) {
		p["repository"].(map[string]any)["id"], p["repository"].(map[string]any)["full_name"] = hubID, hub
		text := p[field].(map[string]any)
		user := map[string]any{"login": login, "id": w.gh.UserID(login), "type": accountType(login)}
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
			s := w.act(event, w.review(event, login, "/fumehood run grep -c o "+file, 7, at), "INPUT_PLAN=")
			if s.code != exitOK || s.outputs["allowed"] != allowed {
				t.Errorf("%s by %s: exit %d, outputs %q\n%s", event, login, s.code, s.outputs, s.log)
			}
		}
		want(t, "comment", w.comment().Body, "grep -c o "+file)
	}
	at = at.Add(10 * time.Second)
	w.ahead.Add(int64(time.Until(at) + time.Second))
	w.ask("Codertocat", "/fumehood help")
	want(t, "comment", w.comment().Body, "/fumehood explain")
	w.act("pull_request_review", w.review("pull_request_review", "Codertocat", "/fumehood explain nothing", 8, at.Add(time.Minute)))
	want(t, "comment", w.comment().Body, "artifacts of the last run")
	if s := w.act("pull_request_review", w.review("pull_request_review", "Codertocat", "Looks good.", 9, at)); s.outputs["conclusion"] != "skipped" {
		t.Errorf("a review without a command: outputs %q\n%s", s.outputs, s.log)
	}
}

// On a fork's pull request the token of a review's workflow is read-only: nothing runs, and a
// notice says where to write the command.
func TestE2EBotReviewBodyOnFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	for _, phase := range []string{"auto", "trigger", "run"} {
		s := w.act("pull_request_review", w.review("pull_request_review", "Codertocat", "/fumehood run cat README.md", 7, time.Now()), "INPUT_PHASE="+phase)
		if s.code != exitOK || s.outputs["conclusion"] != "skipped" || !strings.Contains(s.log, "in a comment on the pull request") {
			t.Errorf("%s: exit %d, outputs %q\n%s", phase, s.code, s.outputs, s.log)
		}
	}
}
