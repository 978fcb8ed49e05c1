// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// THREATS 5: a pull request that was opened before a rule was merged is judged by that rule:
// in one job, and for a comment.
func TestE2EPolicyOfAnOldPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	tip := w.push("master", denyRule("cat"))
	s := w.act("pull_request", w.event("pull_request.opened", nil), catPlan)
	if s.outputs["conclusion"] != "denied" || s.outputs["base"] != w.base {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "house.cat", "master at "+tip[:12], "git:master:.github/fumehood at "+tip[:12])
	w.later()
	if s := w.ask("Codertocat", "/fumehood run cat README.md"); s.outputs["conclusion"] != "denied" {
		t.Errorf("asked by a comment: outputs %q\n%s", s.outputs, s.log)
	}
}

// THREATS 5: the base branch is the author's choice. Its rules apply only if the workflow
// names it, and only in addition.
func TestE2EPolicyOfAnOldBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	legacy := w.push("legacy", denyRule("grep"))
	w.push("master", denyRule("cat"))
	w.gh.Change(prNumber, func(pr *githubtest.PR) { pr.Base.Ref, pr.Base.SHA = "legacy", legacy })
	event := w.event("pull_request.opened", func(p map[string]any) {
		p["pull_request"].(map[string]any)["base"].(map[string]any)["ref"] = "legacy"
	})
	plan := catPlan + "  - {id: search, run: grep -c Hello README.md}\n"
	for branches, denied := range map[string]string{"": "1", "release/*": "1", "release/*, leg*": "2"} {
		s := w.act("pull_request", event, plan, "INPUT_POLICY_BRANCHES="+branches)
		body := w.comment().Body
		want(t, "comment", body, "house.cat")
		if s.outputs["denied"] != denied || strings.Contains(body, "house.grep") != (denied == "2") || strings.Contains(body, "legacy at "+legacy[:12]) != (denied == "2") {
			t.Errorf("policy-branches %q: outputs %q\n%s", branches, s.outputs, s.log)
		}
	}
}

// THREATS 5: a rule that is merged between a fork's run and its report applies to the report:
// what it denies is not a success.
func TestE2EPolicyMergedBetweenRunAndReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil), catPlan)
	if s.outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", s.outputs, s.log)
	}
	w.upload(s, nil)
	tip := w.push("master", map[string]string{"unrelated.txt": "x\n"})
	r := w.report(nil)
	if body := w.comment().Body; r.outputs["conclusion"] != "success" || strings.Contains(body, "Not confirmed") || !strings.Contains(body, "master at "+tip[:12]) {
		t.Errorf("after an unrelated push: outputs %q\n%s", r.outputs, body)
	}
	w.push("master", denyRule("cat"))
	r = w.report(nil)
	if r.outputs["conclusion"] != "denied" || r.code != exitRefused {
		t.Errorf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	want(t, "comment", w.comment().Body, "Not confirmed", "would not have run 1 of these commands", "policy other than")
}

// Every phase finds a default branch that was renamed.
func TestE2EPolicyOfARenamedDefaultBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.push("master", denyRule("cat"))
	w.gitIn(w.repo, "branch", "-m", "master", "trunk")
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil), catPlan)
	if s.outputs["conclusion"] != "denied" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	w.upload(s, nil)
	w.report(nil)
	body := w.comment().Body
	want(t, "comment", body, "house.cat", "git:trunk:.github/fumehood")
	if strings.Contains(body, "Not confirmed") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// No policy is no answer: if the default branch cannot be read, nothing runs.
func TestE2EPolicyOfNoBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.gitIn(w.repo, "symbolic-ref", "HEAD", "refs/heads/gone")
	s := w.act("pull_request", w.event("pull_request.opened", nil), catPlan)
	if s.code != exitStopped || s.outputs["allowed"] != "0" {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "log", s.log, "github.not-found", "read the last commit of a branch")
}

// A pull request whose base has moved is not accused of what others merged. Its own changes are
// named by the job that reports.
func TestE2EChangesSinceTheMergeBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	moved := w.push("master", map[string]string{".github/workflows/theirs.yml": "on: push\n"})
	w.gh.Change(prNumber, func(pr *githubtest.PR) { pr.Base.SHA = moved })
	check := func(what string, accused bool) {
		t.Helper()
		s := w.act("pull_request", w.event("pull_request.opened.fork", nil), catPlan)
		w.upload(s, nil)
		r := w.report(nil)
		w.runID += 10
		for where, text := range map[string]string{"summary": r.summary, "comment": w.comment().Body} {
			if strings.Contains(text, "theirs.yml") || strings.Contains(text, "changes workflows") != accused || strings.Contains(text, "mine.yml") != accused {
				t.Errorf("%s: %s:\n%s", what, where, text)
			}
		}
	}
	check("the base moved", false)
	merge := w.gitIn(w.repo, "commit-tree", w.head+"^{tree}", "-m", "merge", "-p", w.head, "-p", moved)
	w.head = w.commit(w.repo, "workflow", merge, merged(baseFiles, headFiles, map[string]string{".github/workflows/theirs.yml": "on: push\n", ".github/workflows/mine.yml": "on: push\n"}))
	w.gh.Move(prNumber, w.head)
	check("the base was merged, with a change", true)
}

// THREATS 27: of two pull requests from one branch, each gets the results of its own runs. The
// report names it, among those whose head the API confirms; a report that names another is
// refused, and a run without a report is posted on neither.
func TestE2ETwoPullRequestsOfOneBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.gh.AddPR(githubtest.PR{Number: 3, Author: "octocat", Head: w.gh.PR(prNumber).Head, Base: githubtest.Ref{SHA: w.base, Ref: "master", Repository: hub}})
	bodies := func(number int) (all string) {
		for _, c := range w.gh.CommentsBy(number, githubtest.ActionsBot) {
			all += c.Body
		}
		return all
	}
	run := func(number int, file string) step {
		w.runID += 10
		return w.act("pull_request", w.event("pull_request.opened.fork", func(p map[string]any) {
			p["number"], p["pull_request"].(map[string]any)["number"] = number, number
		}), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat "+file+"}\n")
	}
	w.upload(run(2, "README.md"), nil)
	w.report(nil)
	want(t, "comment on 2", bodies(2), "cat README.md")
	if bodies(3) != "" {
		t.Errorf("the results of 2 are on 3:\n%s", bodies(3))
	}
	s := run(3, "greet.sh")
	r := w.report(nil)
	if bodies(3) != "" || strings.Contains(bodies(2), "no report") || r.outputs["conclusion"] != "skipped" {
		t.Errorf("a run without a report: outputs %q\n%s\n%s", r.outputs, bodies(2), bodies(3))
	}
	want(t, "log", r.log, "::warning::2 pull requests")
	w.upload(s, nil)
	w.report(nil)
	want(t, "comment on 3", bodies(3), "cat greet.sh")
	if strings.Contains(bodies(2), "greet.sh") {
		t.Errorf("the results of 3 are on 2:\n%s", bodies(2))
	}
	w.gh.Change(2, func(pr *githubtest.PR) { pr.State = "closed" })
	w.upload(run(3, "notes/new.txt"), func(f map[string][]byte) {
		f[reportName] = []byte(strings.Replace(string(f[reportName]), `"pr": 3`, `"pr": 4`, 1))
	})
	w.report(nil)
	want(t, "comment on 3", bodies(3), "report.malformed")
	if strings.Contains(bodies(2), "report.malformed") {
		t.Errorf("a forged report is posted on a closed pull request:\n%s", bodies(2))
	}
}

// denyRule is a policy of the repository that denies program.
func denyRule(program string) map[string]string {
	return map[string]string{".github/fumehood/deny.rego": "package fumehood.command\n\ndeny contains {\"rule\": \"house." + program + "\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"" + program + "\"\n"}
}
