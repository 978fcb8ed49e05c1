// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A desk is a directory in which fumehood is started as a separate process.
// Everything that the process leaves behind is below that directory.
type desk struct {
	dir     string
	cache   string
	environ []string // instead of this process's
}

func newDesk(t *testing.T) desk {
	t.Helper()
	d := desk{dir: t.TempDir(), cache: jobtest.BuildCache(t)}
	for _, name := range []string{"ws", "tmp", "home"} {
		if err := os.Mkdir(filepath.Join(d.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d desk) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plan writes a plan with one shell text as plan.yaml.
func (d desk) plan(t *testing.T, text, timeout string) {
	t.Helper()
	run, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "plan.yaml", fmt.Sprintf("schema: fumehood.plan/v1\nproposals:\n  - {id: it, run: %s, timeout: %s, limits: {cpus: 2}}\n", run, timeout))
}

// env is the host's environment, without variables through which two tests could
// interfere.
func (d desk) env() []string {
	environ := d.environ
	if environ == nil {
		environ = os.Environ()
	}
	return append(slices.Clone(environ), asFumehood+"=1", "GITHUB_ACTIONS=", "FUMEHOOD_CACHE="+d.cache, "TMPDIR="+d.path("tmp"), "XDG_STATE_HOME="+d.path("state"))
}

// command runs fumehood, which is this test binary.
func (d desk) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir, cmd.Env = d.dir, d.env()
	return cmd
}

// runArgs returns the arguments of a run named name, whose files are name.json,
// name.md, name.jsonl and the directory name.
func (d desk) runArgs(name string, more ...string) []string {
	return append([]string{
		"run", "--setup", "none", "--plan", d.path("plan.yaml"), "--workspace", d.path("ws"), "--artifacts", d.path(name),
		"--report", d.path(name + ".json"), "--markdown", d.path(name + ".md"), "--audit", d.path(name + ".jsonl"),
	}, more...)
}

// run runs plan.yaml with fumehood run and returns its exit code and report.
func (d desk) run(t *testing.T, name string, more ...string) (int, proposal.Report) {
	t.Helper()
	cmd := d.command(t.Context(), d.runArgs(name, more...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	code := exitCode(t, cmd.Run())
	if code == exitUsage || code == exitStopped {
		t.Fatalf("fumehood run: exit code %d\n%s", code, &stderr)
	}
	return code, d.report(t, name)
}

func (d desk) report(t *testing.T, name string) proposal.Report {
	t.Helper()
	data, err := os.ReadFile(d.path(name + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r proposal.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// stdout returns the command's complete stdout.
func (d desk) stdout(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.path(name), "it.stdout"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkSealed runs fumehood verify on the run's log.
func (d desk) checkSealed(t *testing.T, name string) {
	t.Helper()
	out, err := d.command(t.Context(), "verify", d.path(name+".jsonl"), "--key", d.report(t, name).Audit.Key).CombinedOutput()
	if err != nil {
		t.Errorf("the log of %s is not sealed: %v\n%s", name, err, out)
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	}
	t.Fatalf("the process did not exit: %v", err)
	return -1
}

// result returns the one proposal's result, which must have been allowed.
func result(t *testing.T, r proposal.Report) *proposal.Result {
	t.Helper()
	if len(r.Records) != 1 || r.Records[0].Result == nil {
		t.Fatalf("want one command that ran, got %+v (error %+v)", r.Records, r.Error)
	}
	return r.Records[0].Result
}

// traces returns the places outside a desk where a run has files while it lasts.
func traces() map[string]bool {
	found := map[string]bool{}
	for _, pattern := range []string{"/sys/fs/cgroup/fumehood-*", "/sys/fs/cgroup/*/fumehood-*", "/run/fumehood-*", "/tmp/fumehood-[0-9a-f][0-9a-f]*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			found[path] = true
		}
	}
	return found
}

// checkNothingLeft checks that nothing of this desk's runs is left: no process that
// names its directory, no file in its TMPDIR, and no trace that was not there before
// and does not disappear. (Concurrent runs on this machine may make traces that do.)
func (d desk) checkNothingLeft(t *testing.T, before map[string]bool) {
	t.Helper()
	var left []string
	suspects := traces()
	for deadline := time.Now().Add(jobtest.Hang); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left = slices.Collect(maps.Values(jobtest.FindProcesses(d.dir)))
		files, err := filepath.Glob(filepath.Join(d.path("tmp"), "*"))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, files...)
		now := traces()
		for path := range suspects {
			if now[path] && !before[path] {
				left = append(left, path)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}

// printed returns the command's output so far, before it is scanned for secrets.
func (d desk) printed() string {
	files, _ := filepath.Glob(filepath.Join(d.path("tmp"), "fumehood-unread-*", "it.stdout"))
	if len(files) != 1 {
		return ""
	}
	data, _ := os.ReadFile(files[0])
	return string(data)
}

// interrupted starts fumehood with a long command, sends sig while the command is
// running, and returns how long that took, how long fumehood took to exit, and its
// exit code.
func (d desk) interrupted(t *testing.T, name string, sig syscall.Signal) (start, end time.Duration, code int) {
	t.Helper()
	cmd := d.command(t.Context(), d.runArgs(name)...)
	started := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // for a fumehood that never started
	jobtest.WaitUntil(t, "the command's start", func() bool { return d.printed() == "under way\n" })
	begin := time.Now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	return begin.Sub(started), time.Since(begin), exitCode(t, err)
}
