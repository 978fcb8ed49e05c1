// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A session's set-up runs when it is called for, once, in its order, as set-up; what it
// leaves is there for the commands. The configured limits apply to commands, too.
func TestSessionSetUp(t *testing.T) {
	t.Parallel()
	s := open(t, newGate(t, gate.Options{
		Limits: &proposal.Limits{Pids: 77},
		Setup:  gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "mkdir -p deps && echo one > deps/made")}, {Proposal: run("setup-2", "cat deps/made")}}},
	}), gate.SessionOptions{})
	var got []string
	for range 2 {
		err := s.SetUp(t.Context(), proposal.Proposal{}, func(r proposal.Record) {
			got = append(got, r.Proposal.ID)
			if r.Proposal.Origin != proposal.OriginSetup || r.Result == nil || !r.Result.Succeeded() {
				t.Errorf("%+v", r)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0] != "setup-1" || got[1] != "setup-2" {
		t.Errorf("ran %q", got)
	}
	r := do(t, s, run("a", "cat deps/made"))
	if r.Result == nil || string(r.Result.Stdout.Head) != "one\n" || r.Decision.Grant.Limits.Pids != 77 || r.Proposal.Origin != "" {
		t.Errorf("%+v", r)
	}
	report, err := s.Close()
	if err != nil || report.Totals.Succeeded != 3 {
		t.Errorf("%+v, %v", report.Totals, err)
	}
	checkLog(t, report, true)
}

// A command that only reads does not wait for a set-up that was detected. What came before set-up and
// leaves nothing is no reason to keep no layer; a file that was put is, and stays.
func TestSessionSetUpOnDemand(t *testing.T) {
	t.Parallel()
	dir, workspace := filepath.Join(t.TempDir(), "layers"), testWorkspace(t, "a")
	edit(t, workspace, "set.sh", "mkdir -p deps && echo one > deps/made\n")
	edit(t, workspace, "look.sh", "cat deps/made; cat b\n")
	for _, x := range []struct {
		name   string
		put    bool
		before int // commands of set-up that have run when the first command has
		layer  string
	}{
		{"a file between", true, 0, "none"},
		{"nothing between", false, 0, "kept"},
		{"a layer", false, 1, "taken"},
	} {
		s := open(t, newGate(t, gate.Options{Workspace: workspace, Layers: gate.Store{Mode: "write", Dir: dir},
			Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: run("setup-1", "sh set.sh"), Detected: true}}}}), gate.SessionOptions{})
		var records []proposal.Record
		after := func(p proposal.Proposal) proposal.Record {
			t.Helper()
			if err := s.SetUp(t.Context(), p, func(r proposal.Record) { records = append(records, r) }); err != nil {
				t.Fatal(err)
			}
			return do(t, s, p)
		}
		if r := after(run("first", "cat a")); !r.Result.Succeeded() || len(records) != x.before {
			t.Errorf("%s: %+v after %d commands of set-up", x.name, r.Result, len(records))
		}
		var stop *proposal.StopError
		if _, err := s.Start(t.Context(), run("beside", "true")); x.before == 0 != (errors.As(err, &stop) && stop.Code == "session.background") {
			t.Errorf("%s: a command in the background: %v", x.name, err)
		}
		if x.put {
			if out, err := s.Put(t.Context(), "b", []byte("put\n")); err != nil || out.Refused != "" {
				t.Fatalf("%+v, %v", out, err)
			}
		}
		r := after(run("second", "sh look.sh"))
		if want := map[bool]string{true: "one\nput\n", false: "one\n"}[x.put]; len(records) != 1 || string(r.Result.Stdout.Head) != want {
			t.Errorf("%s: %q after %d commands of set-up", x.name, r.Result.Stdout.Head, len(records))
		}
		layer := "none"
		if made := records[0].Result.Layer; made != nil {
			layer = map[bool]string{true: "kept", false: "taken"}[made.Kept]
		}
		if layer != x.layer {
			t.Errorf("%s: layer %s", x.name, layer)
		}
		report, err := s.Close()
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, report, true)
	}
}

// An approval does not outlive its session, is not needed by what policy allows, and does
// not allow what policy denies.
func TestSessionApproval(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	first := open(t, g, gate.SessionOptions{})
	p := run("a", "true")
	old, err := first.Asked(t.Context(), p)
	if err != nil || old.Session != first.ID() || old.Proposal == "" || old.Policy == "" {
		t.Fatalf("%+v, %v", old, err)
	}
	if _, err := first.Close(); err != nil {
		t.Fatal(err)
	}
	old.Client, old.Time = "test", time.Now()
	s := open(t, g, gate.SessionOptions{})
	if r, err := s.DoApproved(t.Context(), p, old); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "approval.void" {
		t.Errorf("with an approval of another session: %+v, %v", r, err)
	}
	denied := run("b", "curl https://evil.example")
	now, err := s.Asked(t.Context(), denied)
	if err != nil {
		t.Fatal(err)
	}
	now.Client = "test"
	if r, err := s.DoApproved(t.Context(), denied, now); err != nil || r.Result != nil || r.ClientApproval != nil {
		t.Errorf("a denied command: %+v, %v", r, err)
	}
	if _, err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
