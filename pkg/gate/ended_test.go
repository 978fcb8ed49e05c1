// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Why a command ended is one stable name, different for each reason.
func TestEnded(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	testprogram.Install(t, workspace)
	s := open(t, newGate(t, gate.Options{Workspace: workspace}), gate.SessionOptions{})
	limited := func(text string, l proposal.Limits) proposal.Proposal {
		return proposal.Proposal{Run: text, Limits: &l}
	}
	for _, test := range []struct {
		want string
		p    proposal.Proposal
	}{
		{"exit", run("", "exit 3")},
		{"signal", run("", "kill -ABRT $$")},
		{"time", limited("sleep 60", proposal.Limits{Wall: proposal.Duration(300 * time.Millisecond)})},
		{"output", limited("yes", proposal.Limits{Output: 64 << 10})},
		{"disk", limited("./testprogram fill big 64", proposal.Limits{Disk: 16 << 20})},
		{"processes", limited("./testprogram fork 100 5s", proposal.Limits{Pids: 32})},
		{"memory", limited("./testprogram alloc 1024", proposal.Limits{Memory: 128 << 20})},
	} {
		test.p.ID = test.want
		if r := do(t, s, test.p); r.Result == nil || r.Result.Ended() != test.want {
			t.Errorf("%s: %+v, %+v", test.want, r.Decision, r.Result)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ctx = gate.WithOutput(ctx, func(proposal.Chunk) { cancel() })
	if r, err := s.Do(ctx, run("interrupted", "echo up; sleep 60")); r.Result == nil || r.Result.Ended() != "interrupted" {
		t.Errorf("%v, %+v", err, r.Result)
	}
	p, _ := startProcess(t, s, run("caller", "echo up; sleep 60"))
	p.Kill()
	ends(t, p, "caller")
	p, _ = startProcess(t, s, run("closed", "echo up; sleep 60"))
	if _, err := s.Close(); err != nil {
		t.Error(err)
	}
	ends(t, p, "closed")
}

func ends(t *testing.T, p gate.Process, want string) {
	t.Helper()
	if r := wait(t, p); r.Result == nil || r.Result.Ended() != want {
		t.Errorf("%s: %+v", want, r.Result)
	}
}

// The session's own times end what runs in it, each under its own name.
func TestEndedBySession(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	s := open(t, g, gate.SessionOptions{Idle: time.Second})
	p, _ := startProcess(t, s, run("idle", "echo up; sleep 60"))
	<-s.Done()
	ends(t, p, "idle")
	// On a busy machine a short lifetime ends before the second command begins.
	var r proposal.Record
	for lifetime := time.Second; lifetime < time.Minute; lifetime *= 4 {
		s = open(t, g, gate.SessionOptions{Lifetime: lifetime})
		p, _ = startProcess(t, s, run("background", "echo up; sleep 60"))
		if r = do(t, s, run("budget", "sleep 60")); r.Result.Ended() != "not-run" {
			break
		}
		s.Close()
	}
	if r.Result.Ended() != "budget" {
		t.Errorf("%+v", r.Result)
	}
	ends(t, p, "budget")
	if r := do(t, s, run("late", "true")); r.Result.Ended() != "not-run" {
		t.Errorf("%+v", r.Result)
	}
	s.Close()
}
