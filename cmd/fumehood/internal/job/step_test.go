// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// The one-job form: a pull request of the same repository, from event to comment.
func TestActionSameRepository(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	if s.Code != cli.Refused || s.Outputs["conclusion"] != "failure" || s.Outputs["sha"] != w.Head {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "<!-- fumehood:report -->", w.Head[:12], "curl", "denied")
	jobtest.CheckContains(t, "summary", s.Summary, "curl")
	if s.Outputs["comment-url"] == "" || s.Outputs["allowed"] != "2" || s.Outputs["denied"] != "1" || s.Outputs["failed"] != "1" {
		t.Errorf("outputs %q", s.Outputs)
	}
}

// A fork's pull request: a run without write permission, whose artifact another
// workflow reports, without checking out the code.
func TestActionFork(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:read")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	if s.Code != cli.Refused || len(w.GH.Comments(jobtest.PrNumber)) != 0 {
		t.Errorf("exit %d, %d comments\n%s", s.Code, len(w.GH.Comments(jobtest.PrNumber)), s.Log)
	}
	jobtest.CheckContains(t, "summary", s.Summary, "curl", "denied")
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	r := w.RunReport(nil)
	if r.Code != cli.Refused || r.Outputs["conclusion"] != "failure" {
		t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, w.Head[:12], "curl", "sealed and complete", "Self-reported")
	if strings.Contains(body, "policy other than") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// A failure that the merge base has, too, is neutral, in the job that runs and in the one that reports a
// fork's run; one that it has not is the pull request's. The report says both of the run on the base.
func TestActionBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:read")
	const plan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: old, run: grep -q nothing README.md}\n"
	act := func(plan string) jobtest.Step {
		return w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), plan, "INPUT_COMPARE_BASE=true")
	}
	if s := act(plan); s.Code != cli.OK || s.Outputs["conclusion"] != "neutral" || s.Outputs["failed"] != "0" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	s := act(plan + "  - {id: new, run: grep -qx 'echo hello' greet.sh}\n")
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	if r := w.RunReport(nil); r.Outputs["conclusion"] != "failure" || r.Outputs["failed"] != "1" {
		t.Errorf("outputs %q\n%s", r.Outputs, r.Log)
	}
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "1 failed, 1 failed before", "passes on <code>"+w.Base[:7]+"</code>", "fails before this pull request, too", "sealed and complete")
	if strings.Contains(body, "policy other than") || strings.Contains(body, "differs from") {
		t.Errorf("the comment doubts an honest report:\n%s", body)
	}
}

// With fail-on: error, the job that reports a fork's failing test, or an artifact that cannot
// be shown, is green: it delivered its report. It fails if it could not.
func TestActionReporterIsGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:read", "actions:read")
	if r := w.RunReport(nil, "INPUT_FAIL_ON=error"); r.Code != cli.Stopped || r.Outputs["conclusion"] != "error" {
		t.Errorf("no right to write: exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	if r := w.RunReport(nil, "INPUT_FAIL_ON=error"); r.Code != cli.OK || r.Outputs["conclusion"] != "failure" {
		t.Errorf("a failing test: exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	w.RunID += 10
	w.AddRun("pull_request", "failure")
	w.UploadArtifact(s, func(f map[string][]byte) { delete(f, jobtest.AuditName) })
	if r := w.RunReport(nil, "INPUT_FAIL_ON=error"); r.Code != cli.OK || r.Outputs["conclusion"] != "error" {
		t.Errorf("a forged artifact: exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "report.malformed")
	// A run that was started by a branch without a pull request is not reported, and nothing fails.
	w.GH.ChangePullRequest(jobtest.PrNumber, func(pr *githubtest.PR) { pr.Head.Ref = "another-branch" })
	before := w.BotComment().Body
	if r := w.RunReport(nil); r.Code != cli.OK || r.Outputs["conclusion"] != "skipped" || w.BotComment().Body != before {
		t.Errorf("no pull request: exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
}

// The working directory of commands can be a directory of the repository.
func TestActionWorkingDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: here, run: cat new.txt}\n"
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_WORKING_DIRECTORY=notes")
	if s.Outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
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
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan)
	if s.Outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "notes/new.txt", "greet.sh", "3 files changed", w.Head[:7])
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "big.bin", "LFS", "<code>.github/fumehood.yml</code> of the default branch: <code>checkout: {lfs: true}</code>")
	if strings.Contains(w.BotComment().Body, "extraheader") || strings.Contains(w.BotComment().Body, w.Git.URL+"/"+jobtest.Hub+".git") {
		t.Errorf("the repository inside names the remote:\n%s", w.BotComment().Body)
	}
}

// dry-run: everything except for posting; the summary shows what would be posted.
func TestActionDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_DRY_RUN=true", "INPUT_CHECK_RUN=true")
	if len(w.GH.Comments(jobtest.PrNumber)) != 0 || len(w.GH.CheckRuns(w.Head)) != 0 || s.Outputs["conclusion"] != "failure" {
		t.Errorf("outputs %q, %d comments\n%s", s.Outputs, len(w.GH.Comments(jobtest.PrNumber)), s.Log)
	}
	jobtest.CheckContains(t, "summary", s.Summary, "curl", "nothing was posted")
}

// observe: the repository's own policy refuses nothing. The comment says what it
// would have refused, and that it was only observed. The default policy still denies.
func TestActionObserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	plan := jobtest.AskPlan + "  - {id: sneaky, run: 'curl https://evil.example/'}\n"
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan, "INPUT_MODE=observe")
	if s.Outputs["allowed"] != "2" || s.Outputs["denied"] != "1" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "house.sort", "observe", "2 succeeded", "1 denied")
}
