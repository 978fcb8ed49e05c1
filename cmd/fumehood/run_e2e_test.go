// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A signal ends a run within seconds: the command is killed, the log sealed, the
// report written, and no process keeps running.
func TestE2EInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			d := newDesk(t)
			d.plan(t, "echo under way; sleep 100 & sleep 100", "2m")
			before := traces()
			start, took, code := d.interrupted(t, "cut", sig)
			t.Logf("exit after %s", took.Round(time.Millisecond))
			if code != exitStopped || took > max(5*time.Second, 3*start) {
				t.Errorf("exit code %d after %s, want %d within 5s", code, took, exitStopped)
			}
			d.checkInterrupted(t)
			d.checkNothingLeft(t, before)
		})
	}
}

func (d desk) checkInterrupted(t *testing.T) {
	t.Helper()
	d.checkSealed(t, "cut")
	r := d.report(t, "cut")
	got := result(t, r)
	if got.Status != proposal.Signaled || got.Signal != "SIGKILL" || got.Detail != "the run was interrupted" {
		t.Errorf("result %+v, want one that says the run was interrupted", got)
	}
	if r.Error == nil {
		t.Error("the report does not say that the run stopped")
	}
	comment, err := os.ReadFile(d.path("cut.md"))
	if err != nil || !strings.Contains(string(comment), "interrupted") {
		t.Errorf("the comment does not say interrupted (%v):\n%s", err, comment)
	}
}

// Two concurrent runs on one workspace see only their own writes, and neither
// changes the host's directory.
func TestE2ESideBySide(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(t, "ws/given", "given\n")
	before := traces()
	reports := map[string]proposal.Report{}
	var mu sync.Mutex
	var both sync.WaitGroup
	for _, name := range []string{"left", "right"} {
		both.Go(func() {
			one := desk{dir: d.dir, cache: d.cache}
			plan := fmt.Sprintf("schema: fumehood.plan/v1\nproposals:\n  - {id: it, run: 'echo %s >> given; sleep 4; cat given; ls'}\n", name)
			if err := os.WriteFile(d.path(name+".yaml"), []byte(plan), 0o644); err != nil {
				t.Error(err)
				return
			}
			args := one.runArgs(name, "--plan", d.path(name+".yaml"))
			if out, err := one.command(t.Context(), args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			reports[name] = one.report(t, name)
		})
	}
	both.Wait()
	if t.Failed() {
		t.FailNow()
	}
	checkOverlap(t, reports["left"].Run, reports["right"].Run)
	for name := range reports {
		if got, want := d.stdout(t, name), "given\n"+name+"\ngiven\n"; got != want {
			t.Errorf("%s saw %q, want %q", name, got, want)
		}
		d.checkSealed(t, name)
	}
	if data, err := os.ReadFile(d.path("ws/given")); string(data) != "given\n" {
		t.Errorf("the host's file is %q, %v", data, err)
	}
	d.checkNothingLeft(t, before)
}

// checkOverlap checks that the runs were concurrent.
func checkOverlap(t *testing.T, a, b proposal.Run) {
	t.Helper()
	endOf := func(r proposal.Run) time.Time { return r.Start.Add(time.Duration(r.WallMS) * time.Millisecond) }
	if !a.Start.Before(endOf(b)) || !b.Start.Before(endOf(a)) {
		t.Fatalf("the runs did not overlap: %s–%s and %s–%s", a.Start, endOf(a), b.Start, endOf(b))
	}
}
