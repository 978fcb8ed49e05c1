// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// Three entries of a merge queue have check runs on their own commits, and change no comment.
func TestNightlyActMergeQueue(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.addWorkflow("ci.yml", strings.ReplaceAll(ciWorkflow, "UNIT", redStep))
	s.local = append(s.local, "--job", "unit")
	commits := []string{s.Head, s.Base, s.Commit(s.Repo, "third", s.Base, jobtest.BaseFiles)}
	s.GitIn(s.Repo, "update-ref", "refs/heads/gh-readonly-queue/master/pr-4", commits[2])
	for i, commit := range commits {
		event := s.MergeGroupEvent(func(p map[string]any) {
			group := p["merge_group"].(map[string]any)
			group["head_sha"], group["head_ref"] = commit, fmt.Sprintf("refs/heads/gh-readonly-queue/master/pr-%d-%s", i+2, s.Base)
		})
		// act knows nothing of merge groups: the commit of their jobs is the HEAD of its directory.
		s.GitIn("", "-C", s.project, "fetch", "-q", s.Repo, "+refs/*:refs/hub/*")
		s.GitIn("", "-C", s.project, "update-ref", "--no-deref", "HEAD", commit)
		r := s.play("ci.yml", "merge_group", event)
		checks := s.GH.CheckRuns(commit)
		if want := []string{"failure", "success", "success"}[i]; len(checks) != 1 || checks[0].Name != "fumehood / ci / unit" || checks[0].Conclusion != want {
			t.Errorf("entry %d: %+v\n%s", i, checks, r.log)
		}
	}
	if n := len(s.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

// The waiting plan of a fork is replaced while the maintainer reads it: the command that the
// maintainer saw approves nothing, and the one that the comment then shows approves the new plan.
func TestNightlyActApproveReplaced(t *testing.T) {
	s := newStage(t, true, jobtest.AskRule, nil)
	plan := func(command string) {
		s.SetPermissions("contents:read", "pull_requests:read")
		r := s.play("fumehood.yml", "pull_request", s.EventPayload("pull_request.opened.fork", nil))
		if !strings.Contains(r.log, "1 asked") && !strings.Contains(r.summary, "waiting") {
			t.Fatalf("exit %d\n%s\n%s", r.code, r.log, r.summary)
		}
		s.tellAll(t, "success", command, "1 waiting")
	}
	s.edit("fumehood.yml", "run: go vet ./...", "run: cat README.md", "run: go test ./...", "run: sort notes/new.txt")
	plan("sort notes/new.txt")
	read := s.ApproveCommand()

	s.edit("fumehood.yml", "run: sort notes/new.txt", "run: sort greet.sh")
	plan("sort greet.sh")
	s.AdvanceClock()
	r := s.asks("Codertocat", read)
	if strings.Contains(r.log, "bot/run| 🏁  Job succeeded") || strings.Contains(s.BotComment().Body, "approved by") {
		t.Errorf("the plan that was read approved another\n%s\n%s", s.BotComment().Body, r.log)
	}
	now := s.ApproveCommand()
	if now == read {
		t.Errorf("both plans have the command %q", now)
	}
	jobtest.CheckContains(t, "comment", s.LastNotice(), "no commands that wait", "`"+now+"`")
	s.AdvanceClock()
	r = s.asks("Codertocat", now)
	jobtest.CheckContains(t, "comment after "+r.log, s.BotComment().Body, "approved by", "sort greet.sh", "2 succeeded")
	if slices.ContainsFunc(s.GH.Comments(jobtest.PrNumber), func(c githubtest.Comment) bool { return strings.Contains(c.Body, "notes/new.txt") }) {
		t.Errorf("the comment still has the first plan\n%s", s.BotComment().Body)
	}
}
