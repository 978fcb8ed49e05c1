// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Why a command ended is one stable name, different for each reason.
func TestEnded(t *testing.T) {
	s := open(t, newGate(t, gate.Options{}), gate.SessionOptions{})
	python := func(code string, l proposal.Limits) proposal.Proposal {
		return proposal.Proposal{Language: "python", Code: code, Limits: &l}
	}
	for _, test := range []struct {
		want string
		p    proposal.Proposal
	}{
		{"exit", run("", "exit 3")},
		{"signal", python("import os; os.abort()", proposal.Limits{})},
		{"time", python("import time; time.sleep(60)", proposal.Limits{Wall: proposal.Duration(time.Second)})},
		{"output", python("while True: print('x' * 1000)", proposal.Limits{Output: 64 << 10})},
		{"disk", python("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", proposal.Limits{Disk: 16 << 20})},
		{"processes", python("import os\nfor i in range(100): os.fork() or __import__('time').sleep(5)", proposal.Limits{Pids: 16})},
		{"memory", python("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1", proposal.Limits{Memory: 128 << 20})},
	} {
		test.p.ID = test.want
		if r := do(t, s, test.p); r.Result == nil || r.Result.Ended() != test.want {
			t.Errorf("%s: %+v, %+v", test.want, r.Decision, r.Result)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err := s.Do(ctx, run("interrupted", "sleep 60")); r.Result == nil || r.Result.Ended() != "interrupted" {
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

func ends(t *testing.T, p *gate.Process, want string) {
	t.Helper()
	if r := wait(t, p); r.Result == nil || r.Result.Ended() != want {
		t.Errorf("%s: %+v", want, r.Result)
	}
}

// The session's own times end what runs in it, each under its own name.
func TestEndedBySession(t *testing.T) {
	g := newGate(t, gate.Options{})
	s := open(t, g, gate.SessionOptions{Idle: 2 * time.Second})
	p, _ := startProcess(t, s, run("idle", "echo up; sleep 60"))
	<-s.Done()
	ends(t, p, "idle")
	s = open(t, g, gate.SessionOptions{Lifetime: 4 * time.Second})
	p, _ = startProcess(t, s, run("background", "echo up; sleep 60"))
	if r := do(t, s, run("budget", "sleep 60")); r.Result.Ended() != "budget" {
		t.Errorf("%+v", r.Result)
	}
	ends(t, p, "budget")
	if r := do(t, s, run("late", "true")); r.Result.Ended() != "not-run" {
		t.Errorf("%+v", r.Result)
	}
	s.Close()
}
