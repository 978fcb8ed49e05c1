// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
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
		err := s.SetUp(t.Context(), func(r proposal.Record) {
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
