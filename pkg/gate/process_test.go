// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// startProcess starts a command and waits until it has printed something.
func startProcess(t *testing.T, s gate.Session, p proposal.Proposal) (gate.Process, *arrivals) {
	t.Helper()
	var came arrivals
	process, err := s.Start(came.in(t.Context()), p)
	if err != nil {
		t.Fatalf("%s: %v", p.ID, err)
	}
	for end := time.Now().Add(30 * time.Second); !came.has("\n"); time.Sleep(5 * time.Millisecond) {
		select {
		case <-process.Done():
			return process, &came
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s prints nothing", p.ID)
		}
	}
	return process, &came
}

func wait(t *testing.T, p gate.Process) proposal.Record {
	t.Helper()
	r, err := p.Wait(t.Context())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

// entriesOf returns the entries of a log that verifies.
func entriesOf(t *testing.T, r proposal.Report) (list []journal.Entry) {
	t.Helper()
	f, err := os.Open(r.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	summary, err := audit.Scan(f, audit.Trust{Key: r.Audit.Key, Checkpoint: r.Audit.Checkpoint}, func(e audit.Entry) error {
		list = append(list, journal.Entry{Kind: e.Kind, Body: slices.Clone(e.Body)})
		return nil
	})
	if err != nil || !summary.Complete() {
		t.Fatalf("the log: %v, %+v", err, summary)
	}
	return list
}

const ticks = "while :; do echo tick; sleep 0.05; done"

// Commands in the background are decided, recorded and ended like others, while others run.
func TestProcesses(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	ticker, came := startProcess(t, s, run("ticker", ticks))
	for i := range 3 {
		before := len(came.text(""))
		if r := ran(t, s, run(fmt.Sprint("fg", i), "uname; ls / >/dev/null")); !r.Succeeded() || string(r.Stdout.Head) != "Linux\n" || !r.Observations.Complete {
			t.Errorf("%+v", r)
		}
		if r := do(t, s, cell(fmt.Sprint("cell", i), "bash", "x=$((x + 1)); echo $x")); described(r) != fmt.Sprintf("exit code 0; %d", i+1) {
			t.Errorf("cell: %s", described(r))
		}
		if out, err := s.Put(t.Context(), "f", []byte("x")); err != nil || out.Refused != "" {
			t.Errorf("%+v, %v", out, err)
		}
		for end := time.Now().Add(20 * time.Second); len(came.text("")) == before && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		if len(came.text("")) == before {
			t.Error("it does not go on")
		}
	}
	denied, err := s.Start(t.Context(), run("denied", "curl https://evil.example"))
	if err != nil {
		t.Fatal(err)
	}
	if r := wait(t, denied); r.Result != nil || r.Decision.Effect != proposal.Deny {
		t.Errorf("%+v", r)
	}
	short, _ := startProcess(t, s, run("short", "echo done; exit 3"))
	if r := wait(t, short); r.Result.Outcome() != "exit code 3" || string(r.Result.Stdout.Head) != "done\n" || !r.Result.Observations.Complete {
		t.Errorf("%+v", r.Result)
	}
	if r := do(t, s, proposal.Proposal{ID: "after", Run: "true", Needs: []string{"short"}}); r.Result.Status != proposal.NotRun {
		t.Errorf("it needs a command that failed: %+v", r.Result)
	}
	ticker.Kill()
	if r := wait(t, ticker); r.Result.Signal != "SIGKILL" || r.Result.Killed != proposal.KilledCaller || !strings.HasPrefix(string(r.Result.Stdout.Head), "tick\n") {
		t.Errorf("%+v", r.Result)
	}
	left, _ := startProcess(t, s, run("left", ticks))
	report, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	if r := wait(t, left); r.Result.Signal != "SIGKILL" || r.Result.Ended() != "closed" {
		t.Errorf("%+v", r.Result)
	}
	if err := left.Interrupt(); err != nil {
		t.Errorf("interrupt after the end: %v", err)
	}
	entries := entriesOf(t, report)
	if doubts := order.CompareLog(report, entries); len(doubts) > 0 {
		t.Errorf("report and log: %q", doubts)
	}
	for _, e := range entries {
		var batch journal.Events
		if e.Kind != "events" || json.Unmarshal(e.Body, &batch) != nil {
			continue
		}
		for _, event := range batch.Events {
			if own := batch.ID == "ticker" || batch.ID == "left"; event.Kind == proposal.EventExec && strings.HasSuffix(event.Path, "/sleep") != (own && !strings.HasSuffix(event.Path, "/bash")) {
				t.Errorf("%s: %s", batch.ID, event.Path)
			}
		}
	}
	// An entry of the background that is missing or repeated is noticed.
	for i, e := range entries {
		if !strings.Contains(string(e.Body), `"ticker"`) || e.Kind == "decision" {
			continue
		}
		if doubts := order.CompareLog(report, slices.Delete(slices.Clone(entries), i, i+1)); len(doubts) == 0 {
			t.Errorf("%s of %d is missing, and no doubt says so", e.Kind, i)
		}
		if doubts := order.CompareLog(report, slices.Insert(slices.Clone(entries), i, e)); len(doubts) == 0 {
			t.Errorf("%s of %d is there twice, and no doubt says so", e.Kind, i)
		}
	}
}

// What cannot run in the background is not accepted, and a command with a network is denied
// while one runs there.
func TestProcessRefused(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	for i, p := range []proposal.Proposal{
		{Run: "true", Outputs: []string{"x"}}, {Run: "true", Fresh: true}, {Run: "true", Network: []string{"a.example:443"}}, cell("", "bash", "true"),
	} {
		p.ID = fmt.Sprint("p", i)
		var stop *proposal.StopError
		if _, err := s.Start(t.Context(), p); !errors.As(err, &stop) || stop.Code != "session.proposal" {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i := range order.MaxBackground {
		startProcess(t, s, run(fmt.Sprint("bg", i), "echo up; sleep 100"))
	}
	var stop *proposal.StopError
	if _, err := s.Start(t.Context(), run("more", "true")); !errors.As(err, &stop) || stop.Code != "session.background" {
		t.Errorf("%v", err)
	}
	if r := do(t, s, run("fg", "echo on")); described(r) != "exit code 0; on" {
		t.Error(described(r))
	}
}

// The time limit of a command in the background, and an interrupt. A session with a caller that waits is not idle.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{Idle: time.Second})
	defer s.Close()
	waited, _ := startProcess(t, s, run("waited", "echo up; sleep 2; echo x > made"))
	if r := wait(t, waited); r.Result == nil || !r.Result.Succeeded() {
		t.Errorf("%+v, %+v", r.Decision, r.Result)
	}
	for range 2 {
		changes, err := s.Changes(t.Context())
		if err != nil || len(changes.Files) != 1 || changes.Files[0] != (proposal.Change{Path: "made", Kind: "added", Type: "file", Bytes: 2}) {
			t.Errorf("%+v, %v", changes, err)
		}
	}
	slow := run("slow", "echo up; sleep 100")
	slow.Limits = &proposal.Limits{Wall: proposal.Duration(300 * time.Millisecond)}
	p, _ := startProcess(t, s, slow)
	if r := wait(t, p); r.Result == nil || r.Result.Status != proposal.TimedOut {
		t.Errorf("%+v, %+v", r.Decision, r.Result)
	}
	p, came := startProcess(t, s, run("interrupted", "trap 'echo interrupted; exit 0' INT; echo up; while :; do :; done"))
	begin := time.Now()
	if err := p.Interrupt(); err != nil {
		t.Error(err)
	}
	if r := wait(t, p); !r.Result.Succeeded() || came.text("") != "up\ninterrupted\n" {
		t.Errorf("%q, %+v, %+v", came.text(""), r.Decision, r.Result)
	}
	t.Logf("interrupt to result: %s", time.Since(begin))
}

// What a command in the background changed is in its result, if none runs beside it at its end; else in that of the
// last. A failed one has its test results.
func TestProcessChanges(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	defer s.Close()
	changes := func(p gate.Process) (paths []string) {
		for _, c := range wait(t, p).Result.Changes.Files {
			paths = append(paths, c.Path)
		}
		return paths
	}
	alone, _ := startProcess(t, s, run("alone", "echo x > alone; exit 1"))
	if got := changes(alone); !slices.Equal(got, []string{"alone"}) {
		t.Errorf("alone: %q", got)
	}
	last, came := startProcess(t, s, run("last", "echo begun; until test -e first; do sleep 0.02; done; sleep 1; echo x > last"))
	for end := time.Now().Add(20 * time.Second); came.text("") == "" && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	first, _ := startProcess(t, s, run("first", "echo x > first"))
	if got := changes(first); len(got) > 0 {
		t.Errorf("beside another: %q", got)
	}
	if got := changes(last); !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("the last: %q", got)
	}
}
