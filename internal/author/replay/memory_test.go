// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A counter allows everything and counts its calls; the first ones return errors.
type counter struct {
	proposals, execs, failures atomic.Int64
}

func (c *counter) Decide(_ context.Context, p proposal.Proposal, _ proposal.Analysis) (proposal.Decision, error) {
	if c.proposals.Add(1); c.failures.Add(-1) >= 0 {
		return proposal.Decision{}, errors.New("slow")
	}
	return proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{}}, nil
}

func (c *counter) Start(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error) {
	return proposal.Decision{Effect: proposal.Allow}, nil
}

func (c *counter) DecideProgram(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, bool, error) {
	return proposal.Decision{Effect: proposal.Allow}, false, nil
}

func (c *counter) Workspace() facts.Workspace { return facts.Workspace{} }

func (c *counter) Exec(context.Context, proposal.Exec) (proposal.ExecDecision, error) {
	c.execs.Add(1)
	return proposal.ExecDecision{Effect: proposal.Allow}, nil
}

func (c *counter) Egress(context.Context, proposal.Egress) (proposal.EgressDecision, error) {
	return proposal.EgressDecision{Effect: proposal.Deny}, nil
}

// Equal questions are asked once and counted each time. Questions that differ in
// anything that policy sees, even in bytes that JSON cannot represent, are all asked.
func TestAgainAsksOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // two goroutines may ask the same before either has a result
	var all []replay.Run
	for i, argv := range []string{"a", "a", "b", "\xff", "\xfe", "\xff"} {
		past := ran("ls")
		past.Runs[0].ID = fmt.Sprint(i)
		past.Runs[0].Acts[0].Execs = []replay.Exec{{Exec: proposal.Exec{Path: "/usr/bin/ls", Pid: i, Argv: []string{argv}}, Times: 1}}
		all = append(all, past.Runs...)
	}
	other := ran("ls")
	other.Runs[0].Acts[0].Proposal.Cwd = "pkg"
	judge := &counter{}
	o, err := replay.Redecide(t.Context(), replay.Past{Runs: append(all, other.Runs...)}, judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Decisions != 13 || o.Proposals != 7 || o.Execs != 6 {
		t.Errorf("%d decisions, %d proposals, %d programs; want 13, 7, 6", o.Decisions, o.Proposals, o.Execs)
	}
	if proposals, execs := judge.proposals.Load(), judge.execs.Load(); proposals != 2 || execs != 5 {
		t.Errorf("asked about %d proposals and %d programs, want 2 and 5", proposals, execs)
	}
}

// An error of policy is not cached: the question is asked again.
func TestAgainKeepsNoError(t *testing.T) {
	judge := &counter{}
	judge.failures.Store(1)
	o, err := replay.Redecide(t.Context(), ran("ls", "ls", "ls"), judge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Changes) != 1 || o.Changes[0].To.Effect != "stop" {
		t.Errorf("changes %+v, want one stop", o.Changes)
	}
}
