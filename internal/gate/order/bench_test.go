// SPDX-License-Identifier: Apache-2.0

package order_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A burst is a sandbox whose command starts n programs as fast as it can.
type burst struct {
	order.Runner
	n   int
	see func(proposal.Event)
}

func (burst) Prepare(sandbox.Execution, bool) {}

func (r burst) Run(context.Context, sandbox.Execution) (proposal.Result, error) {
	e := proposal.Event{
		Command: "a", Kind: proposal.EventExec, Program: "/usr/bin/true",
		Exec: &proposal.Exec{Path: "/usr/bin/true", Argv: []string{"true", "--some", "flag"}, ArgvDigest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Cwd: "/workspace", ParentPath: "/usr/bin/make", Layer: proposal.LayerRootfs},
		Decision: &proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.rootfs"}, Cacheable: true},
	}
	for pid := range r.n {
		e.Pid, e.Parent = pid+2, 1
		r.see(e)
	}
	return proposal.Result{Status: proposal.Exited, Observations: &proposal.Observations{Complete: true}}, nil
}

func (burst) Close() error { return nil }

type allowing struct{}

func (allowing) Decide(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error) {
	l := proposal.Limits{Wall: 1e12, CPUs: 1, Memory: 1, Pids: 1, Disk: 1, Files: 1, Output: 1}
	return proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{Limits: l}}, nil
}

// BenchmarkObserved measures what an exec costs in the real log, on disk, in
// addition to its decision: from the event to its entry, everything included.
func BenchmarkObserved(b *testing.B) {
	log, err := audit.Create(filepath.Join(b.TempDir(), "audit.jsonl"), audit.Options{Origin: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	observer := order.Observing(log)
	h := fake(observer, log, burst{n: b.N, see: observer.AddEvent})
	b.ResetTimer()
	b.ReportAllocs()
	report, err := h.Run(b.Context(), proposal.Plan{Proposals: []proposal.Proposal{{ID: "a", Run: "make"}}}, proposal.Run{})
	if err != nil {
		b.Fatal(err)
	}
	if o := report.Records[0].Result.Observations; o.Counts.Execs != b.N || !o.Complete {
		b.Fatalf("%d of %d seen", o.Counts.Execs, b.N)
	}
}
