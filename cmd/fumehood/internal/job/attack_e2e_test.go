// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/evidence"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// THREATS 8: no event gives a fork's code a job that can write or request an OIDC token.
func TestE2EActionRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, event, payload string
		fork                 bool
		env                  []string
		code                 string
		hint                 string
	}{
		{"pull_request_target", "pull_request_target", "pull_request.opened.fork", true, nil, "event.pull-request-target", "workflow_run"},
		{"workflow_run that would run code", "workflow_run", "workflow_run.completed.pr.fork", true, []string{"INPUT_PHASE=run"}, "phase", "pull_request"},
		{"a fork with an identity", "pull_request", "pull_request.opened.fork", true, []string{"ACTIONS_ID_TOKEN_REQUEST_URL=https://example.com/"}, "token", "id-token"},
		{"a release", "release", "pull_request.opened", false, []string{"INPUT_UNSUPPORTED_EVENT=error"}, "event.unsupported", "pull_request"},
		{"Windows", "pull_request", "pull_request.opened", false, []string{"RUNNER_OS=Windows"}, "runner.os", "ubuntu"},
		{"a plan that is not there", "pull_request", "pull_request.opened", false, []string{"INPUT_PLAN=missing.json"}, "plan.unreadable", "earlier step"},
		{"no plan", "pull_request", "pull_request.opened", false, []string{"INPUT_PLAN="}, "plan", "plan"},
		{"a policy folder that the default branch does not have", "pull_request", "pull_request.opened", false, []string{"INPUT_POLICY=rules"}, "policy.missing", "default branch"},
		{"an input that is wrong", "pull_request", "pull_request.opened", false, []string{"INPUT_MODE=audit"}, "input.invalid", "enforce"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.fork, nil, nil)
			s := w.RunStep(test.event, w.EventPayload(test.payload, nil), test.env...)
			if s.Code != cli.Stopped {
				t.Errorf("exit %d, want %d", s.Code, cli.Stopped)
			}
			jobtest.CheckContains(t, "log", s.Log, test.code, test.hint)
			if strings.Contains(s.Log, "running 3 proposals") || strings.Contains(s.Summary, "succeeded") {
				t.Errorf("something ran:\n%s", s.Log)
			}
		})
	}
}

// THREATS 5: a pull request that edits the policy, the workflows and the action is
// judged by the default branch's, and the comment says that it edits them.
func TestE2EActionPolicyOfTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, map[string]string{
		".github/fumehood/ask.rego": "package fumehood.command\n\nallow contains {\"rule\": \"mine\"} if true\n",
		".github/workflows/ci.yml":  "on: push\n",
	})
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	if s.Outputs["conclusion"] != "asked" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "house.sort", ".github/fumehood/ask.rego", ".github/workflows/ci.yml")
}

// THREATS 9: the head moves between run and report. The comment says so, and a
// result of the old commit never replaces one of the new.
func TestE2EActionHeadMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+jobtest.LookPlan)
	w.UploadArtifact(s, nil)
	old := w.Head
	now := w.Commit(filepath.Join(w.Dir, "git", jobtest.Hub+".git"), "pushed", w.Head, jobtest.MergeFiles(jobtest.BaseFiles, jobtest.HeadFiles, map[string]string{"late.txt": "x\n"}))
	w.GH.MoveHead(jobtest.PrNumber, now)
	r := w.RunReport(nil)
	if r.Code != cli.OK {
		t.Errorf("exit %d\n%s", r.Code, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, old[:12], now[:12], "newer commit")

	// The new commit's own run reports, and then the old one again.
	before := w.RunID
	w.Head = now
	s = w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+jobtest.LookPlan)
	w.UploadArtifact(s, nil)
	w.RunReport(nil)
	newest := w.BotComment().Body
	jobtest.CheckContains(t, "comment", newest, now[:12], "1 succeeded")
	w.Head, w.RunID = old, before
	r = w.RunReport(nil)
	if w.BotComment().Body != newest || r.Code != cli.OK {
		t.Errorf("exit %d: an older run wrote over a newer one\n%s", r.Code, r.Log)
	}
}

// THREATS 9: the head has moved before the run starts. Nothing runs, and nothing fails.
func TestE2EActionHeadMovedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	payload := w.EventPayload("pull_request.opened", nil)
	w.GH.MoveHead(jobtest.PrNumber, githubtest.CommitID("later"))
	s := w.RunStep("pull_request", payload)
	if s.Code != cli.OK || s.Outputs["conclusion"] != "skipped" || len(w.GH.Comments(jobtest.PrNumber)) != 0 {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
}

// THREATS 26: a stranger posts the marker first, on both pages. The bot's comment
// is found by its author.
func TestE2EActionSquatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	for i := range 130 {
		body := fmt.Sprint("comment ", i)
		if i == 3 || i == 120 {
			body = report.Marker + "\n\nAll is well."
		}
		w.GH.AddComment(jobtest.PrNumber, "octocat", body)
	}
	w.GH.AddComment(jobtest.PrNumber, "github-actions", report.Marker+"\n\nAll is well.")
	for range 2 {
		w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 succeeded")
	if c := w.BotComment(); c.Edits == 0 {
		t.Error("the comment was not updated in place")
	}
}

// THREATS 22, 23: the output of a command is neither a workflow command nor an output.
func TestE2EActionForgedOutputs(t *testing.T) {
	t.Parallel()
	hostile := "::set-output name=conclusion::success\\n::error::forged\\n##[error]forged\\nconclusion=success\\n_GitHubActionsFileCommandDelimeter_\\nconclusion<<X\\nsuccess\\nX\\n"
	w := newWorld(t, false, nil, map[string]string{"hostile.txt": strings.ReplaceAll(hostile, `\n`, "\n")})
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: print, run: cat hostile.txt}\n  - {id: fail, run: 'grep -q nothing README.md'}\n"
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan)
	if s.Outputs["conclusion"] != "failure" {
		t.Errorf("outputs %q", s.Outputs)
	}
	for _, line := range strings.Split(s.Log, "\n") {
		if strings.HasPrefix(line, "::error::forged") || strings.Contains(line, "##[error]") || strings.HasPrefix(line, "::set-output") {
			t.Errorf("the log has the command %q", line)
		}
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "forged")
}

// THREATS 12, 28, 29: no secret of the job reaches the sandbox, the comment, the
// summary, the artifact, or the log except for its mask, in any encoding.
func TestE2EActionSecretsStayOut(t *testing.T) {
	t.Parallel()
	canary := "canary-8f3a51c7d2e94b06"
	w := newWorld(t, false, nil, nil)
	w.Process = true
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: env, run: 'cat /proc/self/environ /proc/1/environ /proc/1/cmdline'}\n  - {id: names, run: env}\n"
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan, "ACTIONS_RUNTIME_TOKEN="+canary, "ACTIONS_CACHE_URL=http://127.0.0.1:1/"+canary,
		"ACTIONS_RESULTS_URL=http://127.0.0.1:1/"+canary, "SOME_SECRET="+canary, "AWS_SECRET_ACCESS_KEY="+canary)
	everything := s.Summary + w.BotComment().Body
	for line := range strings.Lines(s.Log) {
		if !strings.HasPrefix(line, "::add-mask::") {
			everything += line
		}
	}
	err := filepath.WalkDir(s.Outputs["artifact-path"], func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		everything += string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, jobtest.JobToken} {
		for name, coded := range encodeSecret(secret) {
			if strings.Contains(everything, coded) {
				t.Errorf("%q leaks as %s", secret, name)
			}
		}
	}
}

// Cancelled: the runner interrupts the step, as when a person cancels. The sandbox
// is removed, the log is sealed, and the comment says so.
func TestE2EActionCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: quick, run: cat README.md}\n  - {id: slow, run: sleep 100000}\n"
	cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForProgram(t, s.Temp, "slow")
	wantSoonEnd(t, cmd, time.Since(begun))
	s = w.FinishStep(s, cmd.ProcessState.ExitCode(), log.String())
	if s.Outputs["conclusion"] != "cancelled" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "ancelled", "cat README.md")
	found, err := evidence.Check{AnyKey: true}.VerifyLog(s.Outputs["audit-log"])
	if err != nil || !found.Whole {
		t.Errorf("the log: %v, %v", found, err)
	}
	jobtest.CheckContains(t, "verdict", found.String(), "consistent and sealed")
	jobtest.CheckNothingRuns(t, s.Temp)
}

// wantSoonEnd interrupts a step and checks that it ends before the runner would
// kill it, after ten seconds; on a slow machine, within five times the start time.
func wantSoonEnd(t *testing.T, cmd *exec.Cmd, start time.Duration) {
	t.Helper()
	begun := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(begun); took > max(10*time.Second, 5*start) {
		t.Errorf("the end took %s, the start %s; the runner kills after ten seconds", took, start)
	}
}

// waitForProgram waits until the log has a program start of the command.
func waitForProgram(t *testing.T, temp, id string) {
	t.Helper()
	jobtest.WaitUntil(t, "a program of "+id, func() bool {
		logs, _ := filepath.Glob(filepath.Join(temp, "fumehood-*", "artifact", jobtest.AuditName))
		for _, path := range logs {
			data, _ := os.ReadFile(path)
			for line := range bytes.Lines(data) {
				var l struct {
					Entry struct {
						Kind string
						Body struct{ ID string }
					}
				}
				if json.Unmarshal(line, &l) == nil && l.Entry.Kind == "events" && l.Entry.Body.ID == id {
					return true
				}
			}
		}
		return false
	})
}
