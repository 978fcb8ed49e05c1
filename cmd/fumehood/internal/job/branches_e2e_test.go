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

// THREATS 5: a pull request that was opened before a rule was merged is judged by that rule:
// in one job, and for a comment.
func TestE2EPolicyOfAnOldPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	tip := w.Push("master", denyRule("cat"))
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), jobtest.CatPlan)
	if s.Outputs["conclusion"] != "denied" || s.Outputs["base"] != w.Base {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "house.cat", "master at "+tip[:12], "git:master:.github/fumehood at "+tip[:12])
	w.AdvanceClock()
	if s := w.AskBot("Codertocat", "/fumehood run cat README.md"); s.Outputs["conclusion"] != "denied" {
		t.Errorf("asked by a comment: outputs %q\n%s", s.Outputs, s.Log)
	}
}

// THREATS 5: the base branch is the author's choice. Its rules apply only if the workflow
// names it, and only in addition.
func TestE2EPolicyOfAnOldBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	legacy := w.Push("legacy", denyRule("grep"))
	w.Push("master", denyRule("cat"))
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.Base.Ref, pr.Base.SHA = "legacy", legacy })
	event := w.EventPayload("pull_request.opened", func(p map[string]any) {
		p["pull_request"].(map[string]any)["base"].(map[string]any)["ref"] = "legacy"
	})
	plan := jobtest.CatPlan + "  - {id: search, run: grep -c Hello README.md}\n"
	for branches, denied := range map[string]string{"": "1", "release/*": "1", "release/*, leg*": "2"} {
		s := w.RunStep("pull_request", event, plan, "INPUT_POLICY_BRANCHES="+branches)
		body := w.BotComment().Body
		jobtest.CheckContains(t, "comment", body, "house.cat")
		if s.Outputs["denied"] != denied || strings.Contains(body, "house.grep") != (denied == "2") || strings.Contains(body, "legacy at "+legacy[:12]) != (denied == "2") {
			t.Errorf("policy-branches %q: outputs %q\n%s", branches, s.Outputs, s.Log)
		}
	}
}

// THREATS 5: a rule that is merged between a fork's run and its report applies to the report:
// what it denies is not a success.
func TestE2EPolicyMergedBetweenRunAndReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), jobtest.CatPlan)
	if s.Outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	tip := w.Push("master", map[string]string{"unrelated.txt": "x\n"})
	r := w.RunReport(nil)
	if body := w.BotComment().Body; r.Outputs["conclusion"] != "success" || strings.Contains(body, "Not confirmed") || !strings.Contains(body, "master at "+tip[:12]) {
		t.Errorf("after an unrelated push: outputs %q\n%s", r.Outputs, body)
	}
	w.Push("master", denyRule("cat"))
	r = w.RunReport(nil)
	if r.Outputs["conclusion"] != "denied" || r.Code != cli.Refused {
		t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "Not confirmed", "would not have run 1 of these commands", "policy other than")
}

// Every phase finds a default branch that was renamed.
func TestE2EPolicyOfARenamedDefaultBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.Push("master", denyRule("cat"))
	w.GitIn(w.Repo, "branch", "-m", "master", "trunk")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), jobtest.CatPlan)
	if s.Outputs["conclusion"] != "denied" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	w.UploadArtifact(s, nil)
	w.RunReport(nil)
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "house.cat", "git:trunk:.github/fumehood")
	if strings.Contains(body, "Not confirmed") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// No policy is no answer: if the default branch cannot be read, nothing runs.
func TestE2EPolicyOfNoBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.GitIn(w.Repo, "symbolic-ref", "HEAD", "refs/heads/gone")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), jobtest.CatPlan)
	if s.Code != cli.Stopped || s.Outputs["allowed"] != "0" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "log", s.Log, "github.not-found", "read the last commit of a branch")
}

// A pull request whose base has moved is not accused of what others merged. Its own changes are
// named by the job that reports.
func TestE2EChangesSinceTheMergeBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	moved := w.Push("master", map[string]string{".github/workflows/theirs.yml": "on: push\n"})
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.Base.SHA = moved })
	check := func(what string, accused bool) {
		t.Helper()
		s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), jobtest.CatPlan)
		w.UploadArtifact(s, nil)
		r := w.RunReport(nil)
		w.RunID += 10
		for where, text := range map[string]string{"summary": r.Summary, "comment": w.BotComment().Body} {
			if strings.Contains(text, "theirs.yml") || strings.Contains(text, "changes workflows") != accused || strings.Contains(text, "mine.yml") != accused {
				t.Errorf("%s: %s:\n%s", what, where, text)
			}
		}
	}
	check("the base moved", false)
	merge := w.GitIn(w.Repo, "commit-tree", w.Head+"^{tree}", "-m", "merge", "-p", w.Head, "-p", moved)
	w.Head = w.Commit(w.Repo, "workflow", merge, jobtest.MergeFiles(jobtest.BaseFiles, jobtest.HeadFiles, map[string]string{".github/workflows/theirs.yml": "on: push\n", ".github/workflows/mine.yml": "on: push\n"}))
	w.GH.MoveHead(jobtest.PrNumber, w.Head)
	check("the base was merged, with a change", true)
}

// THREATS 27: of two pull requests from one branch, each gets the results of its own runs. The
// report names it, among those whose head the API confirms; a report that names another is
// refused, and a run without a report is posted on neither.
func TestE2ETwoPullRequestsOfOneBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.GH.AddPR(githubtest.PR{Number: 3, Author: "octocat", Head: w.GH.PullRequest(jobtest.PrNumber).Head, Base: githubtest.Ref{SHA: w.Base, Ref: "master", Repository: jobtest.Hub}})
	bodies := func(number int) (all string) {
		for _, c := range w.GH.CommentsBy(number, githubtest.ActionsBot) {
			all += c.Body
		}
		return all
	}
	run := func(number int, file string) jobtest.Step {
		w.RunID += 10
		return w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", func(p map[string]any) {
			p["number"], p["pull_request"].(map[string]any)["number"] = number, number
		}), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat "+file+"}\n")
	}
	w.UploadArtifact(run(2, "README.md"), nil)
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment on 2", bodies(2), "cat README.md")
	if bodies(3) != "" {
		t.Errorf("the results of 2 are on 3:\n%s", bodies(3))
	}
	s := run(3, "greet.sh")
	r := w.RunReport(nil)
	if bodies(3) != "" || strings.Contains(bodies(2), "no report") || r.Outputs["conclusion"] != "skipped" {
		t.Errorf("a run without a report: outputs %q\n%s\n%s", r.Outputs, bodies(2), bodies(3))
	}
	jobtest.CheckContains(t, "log", r.Log, "::warning::2 pull requests")
	w.UploadArtifact(s, nil)
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment on 3", bodies(3), "cat greet.sh")
	if strings.Contains(bodies(2), "greet.sh") {
		t.Errorf("the results of 3 are on 2:\n%s", bodies(2))
	}
	w.GH.ChangePullRequest(2, func(pr *githubtest.PR) { pr.State = "closed" })
	w.UploadArtifact(run(3, "notes/new.txt"), func(f map[string][]byte) {
		f[jobtest.ReportName] = []byte(strings.Replace(string(f[jobtest.ReportName]), `"pr": 3`, `"pr": 4`, 1))
	})
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment on 3", bodies(3), "report.malformed")
	if strings.Contains(bodies(2), "report.malformed") {
		t.Errorf("a forged report is posted on a closed pull request:\n%s", bodies(2))
	}
}

// hostRule is a policy of the repository that grants host to proposals that name it.
func hostRule(host string) map[string]string {
	return map[string]string{".github/fumehood/hosts.rego": "package fumehood.proposal\n\n# METADATA\n# title: A host\n# custom: {rule: house.hosts}\n" +
		"network contains {\"rule\": \"house.hosts\", \"host\": h} if {\n\tsome h in input.proposal.network\n\th == \"" + host + "\"\n}\n"}
}

// denyRule is a policy of the repository that denies program.
func denyRule(program string) map[string]string {
	return map[string]string{".github/fumehood/deny.rego": "package fumehood.command\n\ndeny contains {\"rule\": \"house." + program + "\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"" + program + "\"\n"}
}
