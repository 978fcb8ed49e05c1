// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A scene is the behavior of one run of a command.
type scene struct {
	result proposal.Result
	events []proposal.Event
	err    error
}

// staging returns stages whose command "a" plays the scenes in order, with its log.
func staging(t *testing.T, w *world, scenes ...scene) (*Stages, *keeper) {
	t.Helper()
	w.decide = map[string]proposal.Effect{"a": proposal.Allow}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = k
	h.Observer = observing(k)
	h.Start = func(sandbox.Options) (Runner, error) { return &stage{w, scenes, h.Observer}, nil }
	return h, k
}

type stage struct {
	*world
	scenes []scene
	see    *observe.Observer
}

func (s *stage) Run(ctx context.Context, x sandbox.Execution) (proposal.Result, error) {
	again := ""
	if x.Again {
		again = " again"
	}
	s.do("run " + x.ID + again + " " + x.Grant.Limits.Wall.String())
	s.now = s.now.Add(s.took)
	if s.cancel != nil {
		s.cancel()
	}
	now := s.scenes[0]
	s.scenes = s.scenes[1:]
	for _, e := range now.events {
		s.see.AddEvent(e)
	}
	return now.result, now.err
}

func crashing(program, layer string, status int) []proposal.Event {
	e := started(3, 2, program, program)
	e.Exec.Layer = layer
	return []proposal.Event{started(2, 1, "/usr/bin/bash", "bash"), e, exited(3, status), exited(2, (128+status)<<8)}
}

func failing(code int) proposal.Result {
	return proposal.Result{Status: proposal.Exited, ExitCode: code, Observations: whole()}
}

func runs(did []string) (list []string) {
	for _, what := range did {
		if strings.HasPrefix(what, "run ") {
			list = append(list, what)
		}
	}
	return list
}

// A command that failed because a runtime crashed is run a second time, and the log
// and the report contain both runs.
func TestRunOnceMore(t *testing.T) {
	first := failing(139)
	first.Stderr = proposal.Stream{Bytes: 6000, Head: []byte(strings.Repeat("a", 3000)), Tail: []byte(strings.Repeat("b", 3000))}
	first.WallMS = 7
	second := proposal.Result{Status: proposal.Exited, Observations: whole(), Stdout: proposal.Stream{Bytes: 2, Head: []byte("ok")}}
	w := &world{took: 20 * time.Second}
	h, k := staging(t, w, scene{result: first, events: crashing("/usr/bin/node", proposal.LayerRootfs, 11|0x80)},
		scene{result: second, events: []proposal.Event{started(4, 1, "/usr/bin/bash", "bash"), exited(4, 0)}})
	h.Budget = time.Minute
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"run a 1m0s", "run a again 40s"}, runs(w.did)); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	r := report.Records[0].Result
	if !r.Succeeded() || string(r.Stdout.Head) != "ok" || r.Observations.Counts.Execs != 1 || report.Totals.Succeeded != 1 {
		t.Errorf("result %+v, totals %+v", r, report.Totals)
	}
	a := r.Retried
	if a == nil || a.Program != "node" || a.Crash != "SIGSEGV" || a.ExitCode != 139 || a.WallMS != 7 || a.Observations.Counts.Execs != 2 {
		t.Fatalf("first run %+v", a)
	}
	if want := strings.Repeat("a", 1096) + strings.Repeat("b", 3000); string(a.Stderr.Tail) != want || len(a.Stderr.Head) != 0 || !a.Stderr.Truncated {
		t.Errorf("kept %d and %d bytes, truncated %v", len(a.Stderr.Head), len(a.Stderr.Tail), a.Stderr.Truncated)
	}
	if diff := cmp.Diff("run decision start events attempt start+ events result end", kinds(t, k)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about what was just written: %q", doubts)
	}
	a.ExitCode = 1
	if doubts := strings.Join(CompareLog(report, k.entries), "; "); !strings.Contains(doubts, "the first run of command 1") {
		t.Errorf("doubts about a forged first run: %q", doubts)
	}
	r.Retried = nil
	if doubts := CompareLog(report, k.entries); len(doubts) == 0 {
		t.Error("no doubt about a report that hides the first run")
	}
}

// kinds lists the entries of a log, with a mark for a second start.
func kinds(t *testing.T, k *keeper) string {
	t.Helper()
	var list []string
	for _, e := range k.entries {
		h, err := e.Decode()
		if err != nil {
			t.Fatal(err)
		}
		kind := e.Kind
		if h.Again {
			kind += "+"
		}
		if kind == "attempt" && (h.Attempt.Crash != "SIGSEGV" || h.Attempt.Stderr.Tail != nil || h.Attempt.Stderr.Bytes != 6000) {
			t.Errorf("the log says of the first run: %+v", h.Attempt)
		}
		list = append(list, kind)
	}
	return strings.Join(list, " ")
}

// A command is run at most twice, however the second run ends.
func TestRunTwiceAtMost(t *testing.T) {
	again := scene{result: failing(134), events: crashing("/usr/bin/node", proposal.LayerRootfs, 6)}
	w := &world{}
	h, k := staging(t, w, again, again, again)
	report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(runs(w.did)); n != 2 {
		t.Errorf("ran %d times", n)
	}
	r := report.Records[0].Result
	if r.Succeeded() || r.ExitCode != 134 || r.Retried == nil || r.Retried.Crash != "SIGABRT" || report.Totals.Failed != 1 {
		t.Errorf("result %+v", r)
	}
	if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
		t.Errorf("doubts about what was just written: %q", doubts)
	}
}

// A command whose runtime did not crash, or that was stopped, is run once.
func TestNotOnceMore(t *testing.T) {
	const rootfs = proposal.LayerRootfs
	node := func(status int) []proposal.Event { return crashing("/usr/bin/node", rootfs, status) }
	with := func(edit func(*proposal.Result)) proposal.Result {
		r := failing(139)
		edit(&r)
		return r
	}
	for name, test := range map[string]struct {
		scene scene
		judge []proposal.Finding
	}{
		"an ordinary failure":          {scene: scene{result: failing(1), events: []proposal.Event{started(2, 1, "/usr/bin/node", "node"), exited(2, 1<<8)}}},
		"killed by somebody":           {scene: scene{result: failing(137), events: node(9)}},
		"a division by zero":           {scene: scene{result: failing(136), events: node(8)}},
		"a success all the same":       {scene: scene{result: failing(0), events: node(11)}},
		"its own binary":               {scene: scene{result: failing(139), events: crashing("/tmp/x.test", proposal.LayerWritten, 11)}},
		"the pull request's binary":    {scene: scene{result: failing(139), events: crashing("/workspace/x", proposal.LayerWorkspace, 11)}},
		"a program refused":            {scene: scene{result: failing(139), events: append(node(11), refusal(4, 2, "/usr/bin/curl", "exec.net"))}},
		"something found":              {scene: scene{result: failing(139), events: append(node(11), event(proposal.EventWrite, "/etc/x"))}, judge: []proposal.Finding{{Rule: "event.system-file"}}},
		"time was up":                  {scene: scene{result: with(func(r *proposal.Result) { r.Status, r.Limit = proposal.TimedOut, "wall 1m0s" }), events: node(11)}},
		"out of memory":                {scene: scene{result: with(func(r *proposal.Result) { r.Status, r.Limit = proposal.OutOfMemory, "memory 1 GiB" }), events: node(6)}},
		"a limit beside an exit":       {scene: scene{result: with(func(r *proposal.Result) { r.Limit = "disk 1 GiB" }), events: node(11)}},
		"a record with gaps":           {scene: scene{result: with(func(r *proposal.Result) { r.Observations.Counts.Dropped = 1 }), events: node(11)}},
		"nobody watched":               {scene: scene{result: with(func(r *proposal.Result) { r.Observations = nil })}},
		"a sandbox that cannot answer": {scene: scene{result: failing(139), events: node(11), err: &proposal.StopError{Code: "sandbox.crashed"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			h, k := staging(t, w, test.scene, scene{result: failing(0)})
			h.Observer = observing(k, test.judge...)
			report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
			if (err == nil) != (test.scene.err == nil) {
				t.Fatal(err)
			}
			if n := len(runs(w.did)); n != 1 || report.Records[0].Result.Retried != nil {
				t.Errorf("ran %d times", n)
			}
		})
	}
	r := failing(139)
	r.Observations.Programs = []proposal.Program{{Path: "/usr/bin/node", Layer: rootfs, Runs: 1, Crashed: 1, Signal: "SIGSEGV"}}
	if _, crashed := crashedRuntime(r); !crashed {
		t.Error("a crash is none")
	}
	r.Observations.Counts.NetRefused = 1
	if _, crashed := crashedRuntime(r); crashed {
		t.Error("a refused connection does not hinder")
	}
}

// No second run starts after the run has ended: interrupted, out of time, or without a log.
func TestNoTimeForMore(t *testing.T) {
	crash := scene{result: failing(139), events: crashing("/usr/bin/node", proposal.LayerRootfs, 11)}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{cancel: cancel}
		h, _ := staging(t, w, crash, crash)
		report, err := h.Run(ctx, planOf("a"), proposal.Run{})
		if proposal.FailureOf(err).Code != "run.cancelled" || len(runs(w.did)) != 1 || report.Records[0].Result.Retried != nil {
			t.Errorf("%v; ran %q", err, runs(w.did))
		}
	})
	t.Run("budget spent", func(t *testing.T) {
		w := &world{took: time.Minute}
		h, _ := staging(t, w, crash, crash)
		h.Budget = time.Minute
		if _, err := h.Run(t.Context(), planOf("a"), proposal.Run{}); err != nil || len(runs(w.did)) != 1 {
			t.Errorf("%v; ran %q", err, runs(w.did))
		}
	})
	t.Run("no log", func(t *testing.T) {
		w := &world{}
		h, k := staging(t, w, crash, crash)
		k.fails, k.err = "attempt", &proposal.StopError{Code: "audit.full"}
		report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
		if !errors.Is(err, k.err) || len(runs(w.did)) != 1 || report.Records[0].Result.ExitCode != 139 {
			t.Errorf("%v; ran %q", err, runs(w.did))
		}
	})
	t.Run("the second run cannot be vouched for", func(t *testing.T) {
		w := &world{}
		fell := scene{result: proposal.Result{Status: proposal.SandboxFailed, ExitCode: -1}, err: &proposal.StopError{Code: "sandbox.crashed"}}
		h, k := staging(t, w, crash, fell)
		report, err := h.Run(t.Context(), planOf("a"), proposal.Run{})
		r := report.Records[0].Result
		if proposal.FailureOf(err).Code != "sandbox.crashed" || r.Status != proposal.SandboxFailed || r.Retried == nil {
			t.Errorf("%v; result %+v", err, r)
		}
		if data, err := json.Marshal(report); err != nil || !strings.Contains(string(data), `"retried":{"program":"node"`) {
			t.Errorf("%v: %s", err, data)
		}
		if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
			t.Errorf("doubts about what was just written: %q", doubts)
		}
	})
}
