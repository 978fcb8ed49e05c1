// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// askRule is a rule of the repository.
var askRule = map[string]string{".github/fumehood/ask.rego": `package fumehood.command

# METADATA
# title: Sorting needs a person
ask contains {"rule": "house.sort", "message": "a person must look at what is sorted", "suggestion": "leave it unsorted"} if {
	input.command.program == "sort"
}
`}

const askPlan = `schema: fumehood.plan/v1
proposals:
  - {id: look, run: cat README.md}
  - {id: order, run: sort notes/new.txt}
`

// THREATS 10: the permission from the API decides who may start a run; for bots,
// their ids do.
func TestBotWhoMayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.gh.Permit("Codertocat", "write")
	w.gh.Permit("hubot", "triage")
	tests := []struct {
		name, login, body string
		env               []string
		runs              bool
	}{
		{"a maintainer", "Codertocat", "/fumehood run grep -c o notes/new.txt", nil, true},
		{"a contributor without rights", "hubot", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"the author without rights", "octocat", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"a bot", "reviewer[bot]", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"a bot that the workflow names", "reviewer[bot]", "I suggest:\n\n```fumehood\n" + goodPlan + "```\n",
			[]string{fmt.Sprint("INPUT_ALLOWED_BOTS=", w.gh.UserID("reviewer[bot]"))}, true},
		{"a bot of that name with another id", "reviewer[bot]", "```fumehood\n" + goodPlan + "```\n", []string{"INPUT_ALLOWED_BOTS=4711"}, false},
		{"talk", "Codertocat", "I would /fumehood run this", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := w.ask(test.login, test.body, test.env...)
			if ran := s.outputs["allowed"] != "0"; ran != test.runs {
				t.Errorf("ran %t, want %t; outputs %q\n%s", ran, test.runs, s.outputs, s.log)
			}
			if test.runs {
				want(t, "comment", w.comment().Body, "grep -c o notes/new.txt", w.head[:12])
			} else if s.code != exitOK {
				t.Errorf("exit %d: a wish that is not granted is no failure\n%s", s.code, s.log)
			}
		})
	}
}

// The reaction comes before anything slow. The answer to a user without permission
// is in the one comment.
func TestBotAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.ask("Codertocat", "/fumehood run cat README.md")
	mine := w.gh.CommentsBy(prNumber, "Codertocat")[0].ID
	if got := reactions(w.gh, mine); got != "eyes rocket" {
		t.Errorf("reactions %q", got)
	}
	want(t, "comment", w.comment().Body, "cat README.md")
	w.ask("octocat", "/fumehood run cat README.md")
	want(t, "comment", w.comment().Body, "cat README.md", "octocat", "trigger.")
	w.ask("Codertocat", "/fumehood frobnicate")
	want(t, "comment", w.comment().Body, "frobnicate", "/fumehood help")
	w.ask("Codertocat", "/fumehood help")
	want(t, "comment", w.comment().Body, "/fumehood approve", "cat README.md")
}

func reactions(gh *githubtest.Server, comment int64) string {
	var list []string
	for _, r := range gh.Reactions(comment) {
		list = append(list, r.Content)
	}
	return strings.Join(list, " ")
}

// THREATS 9: an approval is valid for one commit, one plan and one policy, and must
// come from someone other than the author.
func TestBotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	w.gh.Permit("octocat", "write")
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
	if s.outputs["conclusion"] != "asked" || s.code != exitOK {
		t.Fatalf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	w.upload(s, nil)
	want(t, "comment", w.comment().Body, "/fumehood approve "+w.head[:12], "house.sort")
	w.later()

	s = w.ask("octocat", "/fumehood approve "+w.head[:12])
	if s.outputs["allowed"] != "0" {
		t.Errorf("the author approved: %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "trigger.", "/fumehood approve "+w.head[:12])
	w.later()

	s = w.ask("Codertocat", "/fumehood approve "+strings.Repeat("0", 12))
	if s.outputs["allowed"] != "0" {
		t.Errorf("another commit was approved: %q\n%s", s.outputs, s.log)
	}
	w.later()

	s = w.ask("Codertocat", "/fumehood approve "+w.head[:12])
	if s.outputs["allowed"] != "2" || s.outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "approved by", "Codertocat", "2 succeeded")
}

// Any change voids an approval: here a push, and the comment says so.
func TestBotApproveVoid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
	w.upload(s, nil)
	old := w.head
	repo := w.dir + "/git/" + hub + ".git"
	w.head = w.commit(repo, "pushed", w.head, merged(baseFiles, headFiles, map[string]string{"late.txt": "surprise\n"}))
	w.gitIn(repo, "update-ref", fmt.Sprintf("refs/pull/%d/head", prNumber), w.head)
	w.gh.Move(prNumber, w.head)
	w.later()
	s = w.ask("Codertocat", "/fumehood approve "+old[:12])
	if s.outputs["allowed"] != "0" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "newer commit")
}

// A fork's code never runs in a job that can write: the trigger job checks the
// request, the run job can only read, and the report job runs nothing.
func TestBotFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.ask("Codertocat", "/fumehood run cat README.md")
	if s.code != exitStopped {
		t.Errorf("exit %d\n%s", s.code, s.log)
	}
	want(t, "log", s.log, "phase: trigger", "phase: run", "phase: report")

	id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood run cat README.md")
	payload := w.commentEvent(id)
	trigger := w.act("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.outputs["run"] != "true" || trigger.outputs["request"] == "" {
		t.Fatalf("outputs %q\n%s", trigger.outputs, trigger.log)
	}
	w.permit("contents:read", "pull_requests:read")
	w.runID--
	ran := w.act("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.outputs["request"])
	if ran.outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", ran.outputs, ran.log)
	}
	w.upload(ran, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	w.runID--
	told := w.act("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.outputs["request"])
	if told.outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", told.outputs, told.log)
	}
	want(t, "comment", w.comment().Body, "cat README.md", w.head[:12])
}

// THREATS 11: comments start no more runs than the budget allows, per pull request
// and per day. The bot's own comment and other bots' start nothing.
func TestBotBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	ran := 0
	for i := range 2 {
		s := w.ask("Codertocat", fmt.Sprintf("/fumehood run grep -c o README.md # %d", i), "INPUT_MAX_RUNS_PER_PR=1")
		if s.outputs["allowed"] == "1" {
			ran++
		}
	}
	if ran != 1 {
		t.Errorf("%d runs, want 1", ran)
	}
	want(t, "comment", w.comment().Body, "trigger.budget-pr")
	s := w.ask("Codertocat", "/fumehood run cat README.md", "INPUT_MAX_RUNS_PER_DAY=2")
	if s.outputs["allowed"] != "0" {
		t.Errorf("the budget of the day is spent, and it ran\n%s", s.log)
	}
	for range 3 { // requests by strangers do not count
		w.ask("octocat", "/fumehood run cat README.md")
	}
	if s := w.ask("Codertocat", "/fumehood run cat README.md", "INPUT_MAX_RUNS_PER_DAY=5"); s.outputs["allowed"] != "1" {
		t.Errorf("strangers have spent the budget of the day\n%s", s.log)
	}
	before := w.comment().Body
	for _, login := range []string{githubtest.ActionsBot, "dependabot[bot]"} {
		s := w.ask(login, "/fumehood help")
		if s.code != exitOK || s.outputs["conclusion"] != "skipped" {
			t.Errorf("%s: exit %d, outputs %q\n%s", login, s.code, s.outputs, s.log)
		}
	}
	if got := w.gh.CommentsBy(prNumber, githubtest.ActionsBot)[0].Body; got != before {
		t.Errorf("a bot was answered:\n%s", got)
	}
}

// THREATS 9: editing an old comment does not make it a command.
func TestBotEditedComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.act("issue_comment", w.event("issue_comment.edited.pr", func(p map[string]any) {
		p["comment"].(map[string]any)["body"] = "/fumehood run cat README.md"
	}))
	if s.code != exitOK || s.outputs["conclusion"] != "skipped" || len(w.gh.Comments(prNumber)) != 0 {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
}

// rerun decides the last plan again on the current commit; explain answers from the
// last report.
func TestBotRerunAndExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.ask("Codertocat", "/fumehood rerun")
	want(t, "comment", w.comment().Body, "nothing has run")
	s := w.act("pull_request", w.event("pull_request.opened", nil))
	w.upload(s, nil)
	s = w.ask("Codertocat", "/fumehood rerun")
	if s.outputs["denied"] != "1" || s.outputs["allowed"] != "2" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	w.upload(s, nil)
	w.ask("Codertocat", "/fumehood explain sneaky")
	want(t, "comment", w.comment().Body, "sneaky", "parse.shell-stdin", "notes/new.txt")
	w.ask("Codertocat", "/fumehood explain nothing-of-that-name")
	want(t, "comment", w.comment().Body, "nothing-of-that-name")
}

// THREATS 9: if a job with an approval is started again after the policy has changed,
// it does not run under the old policy.
func TestBotApprovalOfAnOldBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
	w.upload(s, nil)
	w.later()
	id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood approve "+w.head[:12])
	payload := w.commentEvent(id)
	trigger := w.act("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.outputs["run"] != "true" {
		t.Fatalf("outputs %q\n%s", trigger.outputs, trigger.log)
	}
	w.push("master", denyRule("sort"))
	ran := w.act("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.outputs["request"])
	if ran.outputs["conclusion"] != "error" || ran.code != exitStopped || strings.Contains(ran.summary, "succeeded") {
		t.Errorf("exit %d, outputs %q", ran.code, ran.outputs)
	}
	want(t, "log", ran.log, "approval.void")
}
