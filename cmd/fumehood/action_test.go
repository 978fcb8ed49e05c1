// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// The one-job form: a pull request of the same repository, from event to comment.
func TestActionSameRepository(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil))
	if s.code != exitRefused || s.outputs["conclusion"] != "failure" || s.outputs["sha"] != w.head {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "<!-- fumehood:report -->", w.head[:12], "curl", "denied")
	want(t, "summary", s.summary, "curl")
	if s.outputs["comment-url"] == "" || s.outputs["allowed"] != "2" || s.outputs["denied"] != "1" || s.outputs["failed"] != "1" {
		t.Errorf("outputs %q", s.outputs)
	}
}

// A fork's pull request: a run without write permission, whose artifact another
// workflow reports, without checking out the code.
func TestActionFork(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	if s.code != exitRefused || len(w.gh.Comments(prNumber)) != 0 {
		t.Errorf("exit %d, %d comments\n%s", s.code, len(w.gh.Comments(prNumber)), s.log)
	}
	want(t, "summary", s.summary, "curl", "denied")
	w.upload(s, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	r := w.report(nil)
	if r.code != exitRefused || r.outputs["conclusion"] != "failure" {
		t.Errorf("exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	body := w.comment().Body
	want(t, "comment", body, w.head[:12], "curl", "sealed and complete", "Self-reported")
	if strings.Contains(body, "policy other than") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// A failure that the merge base has, too, is neutral, in the job that runs and in the one that reports a
// fork's run; one that it has not is the pull request's. The report says both of the run on the base.
func TestActionBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	const plan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: old, run: grep -q nothing README.md}\n"
	act := func(plan string) step {
		return w.act("pull_request", w.event("pull_request.opened.fork", nil), plan, "INPUT_COMPARE_BASE=true")
	}
	if s := act(plan); s.code != exitOK || s.outputs["conclusion"] != "neutral" || s.outputs["failed"] != "0" {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	s := act(plan + "  - {id: new, run: grep -qx 'echo hello' greet.sh}\n")
	w.upload(s, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	if r := w.report(nil); r.outputs["conclusion"] != "failure" || r.outputs["failed"] != "1" {
		t.Errorf("outputs %q\n%s", r.outputs, r.log)
	}
	body := w.comment().Body
	want(t, "comment", body, "1 failed, 1 failed before", "passes on <code>"+w.base[:7]+"</code>", "fails before this pull request, too", "sealed and complete")
	if strings.Contains(body, "policy other than") || strings.Contains(body, "differs from") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// With fail-on: error, the job that reports a fork's failing test, or an artifact that cannot
// be shown, is green: it delivered its report. It fails if it could not.
func TestActionReporterIsGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened.fork", nil))
	w.upload(s, nil)
	w.permit("contents:read", "pull_requests:read", "actions:read")
	if r := w.report(nil, "INPUT_FAIL_ON=error"); r.code != exitStopped || r.outputs["conclusion"] != "error" {
		t.Errorf("no right to write: exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	w.permit("contents:read", "pull_requests:write", "actions:read")
	if r := w.report(nil, "INPUT_FAIL_ON=error"); r.code != exitOK || r.outputs["conclusion"] != "failure" {
		t.Errorf("a failing test: exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	w.runID += 10
	w.addRun("pull_request", "failure")
	w.upload(s, func(f map[string][]byte) { delete(f, auditName) })
	if r := w.report(nil, "INPUT_FAIL_ON=error"); r.code != exitOK || r.outputs["conclusion"] != "error" {
		t.Errorf("a forged artifact: exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
	want(t, "comment", w.comment().Body, "report.malformed")
	// A run that was started by a branch without a pull request is not reported, and nothing fails.
	w.gh.Change(prNumber, func(pr *githubtest.PR) { pr.Head.Ref = "another-branch" })
	before := w.comment().Body
	if r := w.report(nil); r.code != exitOK || r.outputs["conclusion"] != "skipped" || w.comment().Body != before {
		t.Errorf("no pull request: exit %d, outputs %q\n%s", r.code, r.outputs, r.log)
	}
}

// The working directory of commands can be a directory of the repository. A plan with a
// deprecated field runs, and the job's log has a warning.
func TestActionWorkingDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: here, run: cat new.txt, fresh: true}\n"
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_WORKING_DIRECTORY=notes")
	if s.outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "log", s.log, `::warning::plan:3:34: proposals[0].fresh: field "fresh" is deprecated: use "new-sandbox"`)
}

// git works in the sandbox, on both commits, without a remote and without a credential. A missing
// large file is named.
func TestActionGitInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{"big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"})
	plan := `schema: fumehood.plan/v1
proposals:
  - {id: status, run: git status --short --branch}
  - {id: diff, run: git diff --stat refs/remotes/origin/base HEAD}
  - {id: log, run: git log --oneline -1}
  - {id: config, run: cat .git/config}
`
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+plan)
	if s.outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "notes/new.txt", "greet.sh", "3 files changed", w.head[:7])
	want(t, "comment", w.comment().Body, "big.bin", "LFS", "<code>.github/fumehood.yml</code> of the default branch: <code>checkout: {lfs: true}</code>")
	if strings.Contains(w.comment().Body, "extraheader") || strings.Contains(w.comment().Body, w.git.URL+"/"+hub+".git") {
		t.Errorf("the repository inside names the remote:\n%s", w.comment().Body)
	}
}

// dry-run: everything except for posting; the summary shows what would be posted.
func TestActionDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_DRY_RUN=true", "INPUT_CHECK_RUN=true")
	if len(w.gh.Comments(prNumber)) != 0 || len(w.gh.CheckRuns(w.head)) != 0 || s.outputs["conclusion"] != "failure" {
		t.Errorf("outputs %q, %d comments\n%s", s.outputs, len(w.gh.Comments(prNumber)), s.log)
	}
	want(t, "summary", s.summary, "curl", "nothing was posted")
}

// A former name of an input works, with a warning in the log and in the summary.
func TestActionDeprecatedInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.act("issue_comment", w.event("issue_comment.created", nil), "INPUT_STAGED=true")
	if s.code != 0 || s.outputs["conclusion"] != "skipped" {
		t.Errorf("exit %d, outputs %q\n%s", s.code, s.outputs, s.log)
	}
	want(t, "log", s.log, "::warning::input staged is deprecated: use dry-run")
	want(t, "summary", s.summary, "input staged is deprecated: use dry-run")
	s = w.act("issue_comment", w.event("issue_comment.created", nil), "INPUT_STAGED=true", "INPUT_DRY_RUN=false")
	if s.code != exitStopped {
		t.Errorf("exit %d\n%s", s.code, s.log)
	}
	want(t, "log", s.log, "dry-run and the deprecated input staged have different values")
}

// observe: the repository's own policy refuses nothing. The comment says what it
// would have refused, and that it was only observed. The default policy still denies.
func TestActionObserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, askRule, nil)
	plan := askPlan + "  - {id: sneaky, run: 'curl https://evil.example/'}\n"
	s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_MODE=observe")
	if s.outputs["allowed"] != "2" || s.outputs["denied"] != "1" {
		t.Errorf("outputs %q\n%s", s.outputs, s.log)
	}
	want(t, "comment", w.comment().Body, "house.sort", "observe", "2 succeeded", "1 denied")
}
