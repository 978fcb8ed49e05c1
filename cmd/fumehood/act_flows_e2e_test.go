// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// show is a workflow's command in the tests: it is fast, and its output differs
// between the pull request and the base.
const show = "cat notes/new.txt"

// (a) A pull request of the same repository, from the event to the comment, with
// the release downloaded once and then found in the tool cache.
func TestE2EActSameRepository(t *testing.T) {
	t.Parallel()
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	for range 2 {
		r := s.play("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
		if r.code != 0 {
			t.Errorf("exit %d\n%s", r.code, r.log)
		}
		jobtest.CheckContains(t, "comment", s.BotComment().Body, s.Head[:12], show, "1 succeeded")
		jobtest.CheckContains(t, "summary", r.summary, show)
	}
	if len(s.downloads.paths) != 1 {
		t.Errorf("downloads %q, want one", s.downloads.paths)
	}
}

// (b) A fork's pull request through both workflows: the first has a read-only token
// and uploads an artifact, the second posts and checks out nothing.
func TestE2EActFork(t *testing.T) {
	t.Parallel()
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.SetPermissions("contents:read", "pull_requests:read")
	r := s.play("fumehood.yml", "pull_request", s.EventPayload("pull_request.opened.fork", nil))
	if r.code != 0 || len(s.GH.Comments(jobtest.PrNumber)) != 0 {
		t.Fatalf("exit %d, %d comments\n%s", r.code, len(s.GH.Comments(jobtest.PrNumber)), r.log)
	}
	jobtest.CheckContains(t, "summary", r.summary, show, "2 succeeded")
	s.tellAll(t, "success", "2 succeeded")
	jobtest.CheckContains(t, "comment", s.BotComment().Body, show, s.Head[:12], "Self-reported", "sealed and complete")
	// A run whose workflow its author can change never makes a check succeed.
	if runs := s.GH.CheckRuns(s.Head); len(runs) != 1 || runs[0].Conclusion != "neutral" {
		t.Errorf("check runs %+v", runs)
	}
}

// tellAll runs the workflow that reports the last run.
func (s *stage) tellAll(t *testing.T, conclusion string, pieces ...string) actRun {
	t.Helper()
	ran := s.RunID
	s.AddRun("pull_request", conclusion)
	s.SetPermissions("contents:read", "pull_requests:write", "actions:read", "checks:write")
	name := "workflow_run.completed.pr"
	if s.Fork {
		name += ".fork"
	}
	payload := s.EventPayload(name, func(p map[string]any) { p["workflow_run"].(map[string]any)["conclusion"] = conclusion })
	r := s.play("fumehood-report.yml", "workflow_run", payload)
	s.RunID = ran
	if !strings.Contains(r.log, "Job succeeded") && !strings.Contains(r.log, "Job failed") {
		t.Fatalf("the report's job did not run\n%s", r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, pieces...)
	return r
}

// asks comments on the pull request and runs the bot's workflow.
func (s *stage) asks(login, body string) actRun {
	s.T.Helper()
	id := s.GH.AddComment(jobtest.PrNumber, login, body)
	s.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	return s.play("bot.yml", "issue_comment", s.CommentEvent(id))
}

// (c) /fumehood run and approve by a maintainer, a contributor, a bot and the author,
// in three jobs, on a fork's pull request.
func TestE2EActBot(t *testing.T) {
	t.Parallel()
	s := newStage(t, true, jobtest.AskRule, nil)
	s.GH.SetRole("hubot", "triage")
	others := oneIn(t, 2, 3, []string{"octocat", "hubot", "reviewer[bot]"})
	for _, login := range others {
		r := s.asks(login, "/fumehood run "+show)
		if strings.Contains(r.log, "running 1 proposals") || strings.Contains(r.log, "bot/run") && strings.Contains(r.log, "bot/run| 🏁  Job succeeded") {
			t.Errorf("%s started a run\n%s", login, r.log)
		}
	}
	r := s.asks("Codertocat", "/fumehood run\n\n```fumehood\n"+jobtest.AskPlan+"```\n")
	body := s.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "cat README.md", "house.sort")
	if strings.Contains(body, "Self-reported") {
		t.Errorf("a run of the bot's own workflow is no self-report\n%s", r.log)
	}
	for _, login := range others {
		s.AdvanceClock()
		s.asks(login, s.ApproveCommand())
		jobtest.CheckContains(t, "comment", s.BotComment().Body, "house.sort", "1 waiting")
	}
	s.AdvanceClock()
	r = s.asks("Codertocat", s.ApproveCommand())
	jobtest.CheckContains(t, "comment after "+r.log, s.BotComment().Body, "approved by", "2 succeeded")
}

// refuses plays the job, which must fail without a comment each time, until its log has the
// pieces: the runner does not wait for the last output of a step that fails
// (host_environment.go, exec), so that on a busy host a log can end before the message.
func (s *stage) refuses(what string, payload []byte, pieces ...string) {
	s.T.Helper()
	var r actRun
	for try := 0; try < 4 && (try == 0 || !containsAll(r.log, pieces)); try++ {
		r = s.play("one-job.yml", "pull_request", payload)
		if r.code == 0 || len(s.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)) != 0 {
			s.T.Fatalf("%s: exit %d, %d comments\n%s", what, r.code, len(s.GH.Comments(jobtest.PrNumber)), r.log)
		}
	}
	jobtest.CheckContains(s.T, what, r.log, pieces...)
}

func containsAll(text string, pieces []string) bool {
	return !slices.ContainsFunc(pieces, func(p string) bool { return !strings.Contains(text, p) })
}

// (e) An artifact that was altered in transit is not shown.
func TestE2EActTamperedArtifact(t *testing.T) {
	t.Parallel()
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.play("fumehood.yml", "pull_request", s.EventPayload("pull_request.opened.fork", nil))
	zips, err := filepath.Glob(filepath.Join(s.artifacts, "*", "fumehood-*", "*.zip"))
	if err != nil || len(zips) != 1 {
		t.Fatalf("artifacts %q (%v)", zips, err)
	}
	data, err := os.ReadFile(zips[0])
	s.must(err)
	s.must(os.WriteFile(zips[0], rezipped(t, data, func(f map[string][]byte) {
		f[jobtest.ReportName] = bytes.Replace(f[jobtest.ReportName], []byte(`"exit_code": 0`), []byte(`"exit_code": 1`), 1)
	}), 0o644))
	s.tellAll(t, "success", "report.malformed")
	if strings.Contains(s.BotComment().Body, show) {
		t.Errorf("the comment shows what was forged:\n%s", s.BotComment().Body)
	}
}

// (f) Cancelled during the run, as the real runner does it, with an interrupt to
// the step's process: the sandbox is removed, the log is sealed, and the comment
// says cancelled.
func TestE2EActCancelled(t *testing.T) {
	t.Parallel()
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: sleep 300")
	cmd := s.command("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	s.must(cmd.Start())
	pid := waitForSleeper(t, s.installed)
	s.must(syscall.Kill(pid, syscall.SIGINT))
	_ = cmd.Wait()
	jobtest.CheckContains(t, "comment", s.BotComment().Body, "ancelled")
	s.wantSealed(t)
	jobtest.CheckNothingRuns(t, s.installed)
}

// waitForSleeper waits until the command has started, according to the log in the
// step's directory, and returns the process of the action's step.
func waitForSleeper(t *testing.T, installed string) int {
	t.Helper()
	step := 0
	jobtest.WaitUntil(t, "the command's start", func() bool {
		started := false
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range all {
			data, _ := os.ReadFile(path)
			words := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
			if !strings.HasPrefix(words[0], installed) {
				continue
			}
			if len(words) == 2 && words[1] == "action" {
				fmt.Sscanf(path, "/proc/%d/cmdline", &step)
				environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
				started = started || hasStarted(environ)
			}
		}
		return step > 0 && started
	})
	time.Sleep(500 * time.Millisecond)
	return step
}

// hasStarted reports whether a log in the directory of a step with this environment has a start.
func hasStarted(environ []byte) bool {
	for v := range strings.SplitSeq(string(environ), "\x00") {
		temp, ok := strings.CutPrefix(v, "RUNNER_TEMP=")
		if !ok {
			continue
		}
		logs, _ := filepath.Glob(filepath.Join(temp, "fumehood-*", "artifact", jobtest.AuditName))
		for _, path := range logs {
			if log, _ := os.ReadFile(path); bytes.Contains(log, []byte(`"kind":"start"`)) {
				return true
			}
		}
	}
	return false
}

// wantSealed verifies the log of the run's artifact.
func (s *stage) wantSealed(t *testing.T) {
	t.Helper()
	zips, err := filepath.Glob(filepath.Join(s.artifacts, "*", "fumehood-*", "*.zip"))
	if err != nil || len(zips) != 1 {
		t.Fatalf("artifacts %q (%v)", zips, err)
	}
	data, err := os.ReadFile(zips[0])
	s.must(err)
	log := s.path("audit.jsonl")
	rezipped(t, data, func(files map[string][]byte) { s.must(os.WriteFile(log, files[jobtest.AuditName], 0o644)) })
	out, _ := exec.Command(s.Binary, "verify", log, "--untrusted-key").CombinedOutput()
	jobtest.CheckContains(t, "verdict", string(out), "consistent and sealed")
}

// flipping changes one byte in the middle of next's responses.
func flipping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		body := recorded.Body.Bytes()
		body[len(body)/2] ^= 1
		w.Write(body)
	})
}

// rezipped unpacks a zip, lets change modify the files, and packs them again.
func rezipped(t *testing.T, data []byte, change func(map[string][]byte)) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range r.File {
		content, err := r.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
	}
	change(files)
	return jobtest.ZipFiles(t, files)
}

// (h) As a user who is not root and may use sudo, as on hosted runners: the step keeps
// running as that user, the sandbox's supervisor is root, and its files can be uploaded.
func TestE2EActWithSudo(t *testing.T) {
	t.Parallel()
	allowSudo(t)
	s := newStage(t, false, nil, nil)
	s.user = sudoUser
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	r := s.play("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.log)
	}
	jobtest.CheckContains(t, "comment", s.BotComment().Body, s.Head[:12], show, "1 succeeded")
	s.wantSealed(t)
}

// (h) Without sudo nothing runs, and the log says what to do.
func TestE2EActWithoutSudo(t *testing.T) {
	t.Parallel()
	s := newStage(t, false, nil, nil)
	s.user = 65534
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	s.refuses("no sudo", s.EventPayload("pull_request.opened", nil), "install.root", "NOPASSWD")
}
