// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkFlood runs the whole program with a command that prints 2 GiB. It
// measures how fast the output is read, and fumehood's peak resident memory.
// Budgets: at least 500 MB/s, below 100 MiB.
func BenchmarkFlood(b *testing.B) {
	benchPlan(b, `
schema: fumehood.plan/v1
proposals:
  - id: flood
    limits: {cpus: 2}
    language: python
    code: |
      import os
      chunk = bytes(1 << 20)
      for _ in range(2048):
          os.write(1, chunk)
`)
}

// BenchmarkRun measures the whole program, from start to exit, with one command
// that does nothing.
func BenchmarkRun(b *testing.B) {
	benchPlan(b, nothing)
}

const nothing = "schema: fumehood.plan/v1\nproposals:\n  - {id: nothing, run: \"true\"}\n"

func benchPlan(b *testing.B, plan string) {
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		b.Fatal(err)
	}
	benchPlanIn(b, dir, plan)
}

// benchPlanIn runs a plan in the workspace dir/ws.
func benchPlanIn(b *testing.B, dir, plan string) {
	b.Helper()
	installtest.Runsc(b)
	file, report := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "report.json")
	if err := os.WriteFile(file, []byte(plan), 0o644); err != nil {
		b.Fatal(err)
	}
	var peak int64
	var result proposal.Result
	for b.Loop() {
		cmd := exec.Command(os.Args[0], "run", "--plan", file, "--workspace", filepath.Join(dir, "ws"), "--report", report)
		cmd.Env = append(os.Environ(), asFumehood+"=1", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		peak = max(peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		result = resultIn(b, report)
	}
	b.ReportMetric(float64(peak)/1024, "MiB-resident")
	if result.Stdout.Bytes > 0 {
		took := time.Duration(result.WallMS) * time.Millisecond
		b.ReportMetric(float64(result.Stdout.Bytes)/1e6/took.Seconds(), "MB/s")
	}
}

func resultIn(b *testing.B, path string) proposal.Result {
	b.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	var r proposal.Report
	if err := json.Unmarshal(data, &r); err != nil {
		b.Fatal(err)
	}
	return *r.Records[0].Result
}

// BenchmarkAction measures a step of the action from start to exit, on a pull request
// of three files with one command that does nothing: "run" as for a fork, and "run
// and report" with the comment, whose pauses are 150 ms here and 2 s in production.
func BenchmarkAction(b *testing.B) {
	for name, fork := range map[string]bool{"run": true, "run and report": false} {
		b.Run(name, func(b *testing.B) {
			benchAction(b, fork, nil)
		})
	}
}

func benchAction(b *testing.B, fork bool, files map[string]string) {
	w := jobtest.NewWorld(b, fork, files, nil)
	w.Process = true
	event := w.EventPayload("pull_request.opened", nil)
	if fork {
		event = w.EventPayload("pull_request.opened.fork", nil)
	}
	for b.Loop() {
		if s := w.RunStep("pull_request", event, "INPUT_PLAN="+jobtest.LookPlan); s.Code != exitOK {
			b.Fatalf("exit %d\n%s", s.Code, s.Log)
		}
	}
}

// BenchmarkManyFiles measures runs in a repository of 50,000 files, with commands that do
// next to nothing: of the command line, and of the action, which fetches the repository
// from a server first. The budget is two seconds before the first command.
func BenchmarkManyFiles(b *testing.B) {
	files := map[string]string{}
	for i := range 50_000 {
		files[fmt.Sprintf("dir%d/sub%d/file%d.txt", i/2500, i/100, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 20)
	}
	b.Run("run", func(b *testing.B) {
		dir := b.TempDir()
		for name, text := range files {
			write(b, filepath.Join(dir, "ws", name), text)
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-q", "-m", "files"}} {
			if out, err := exec.Command("git", append([]string{"-C", filepath.Join(dir, "ws")}, args...)...).CombinedOutput(); err != nil {
				b.Fatalf("git: %v: %s", err, out)
			}
		}
		benchPlanIn(b, dir, nothing)
	})
	b.Run("action", func(b *testing.B) { benchAction(b, true, files) })
}
