// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func approved() proposal.Run {
	run := proposal.Run{HeadSHA: "abc", PlanDigest: "sha256:plan", Policy: "sha256:policy"}
	run.Approval = &proposal.Approval{By: "octocat", HeadSHA: "abc", PlanDigest: "sha256:plan", Policy: "sha256:policy"}
	return run
}

// An approval runs the proposals that policy asked about, in plan order, and none
// that policy denied.
func TestApproval(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Ask, "c": proposal.Deny}}
	plan := planOf("a", "b", "c")
	plan.Digest = "sha256:plan"
	report, err := w.stages().Run(t.Context(), plan, approved())
	if err != nil {
		t.Fatal(err)
	}
	want := proposal.Totals{Proposed: 3, Allowed: 2, Denied: 1, Succeeded: 2}
	if diff := cmp.Diff(want, report.Totals); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(w.did, "run b: text of b") || slices.Contains(w.did, "run c: text of c") {
		t.Errorf("did %q, want b and not c", w.did)
	}
}

// THREATS 9: any change voids an approval, and then not even allowed proposals run.
func TestApprovalVoid(t *testing.T) {
	changes := map[string]func(*proposal.Run, *proposal.Plan){
		"commit":                      func(r *proposal.Run, _ *proposal.Plan) { r.HeadSHA = "def" },
		"plan":                        func(r *proposal.Run, _ *proposal.Plan) { r.PlanDigest = "sha256:other" },
		"plan that is not the run's":  func(_ *proposal.Run, p *proposal.Plan) { p.Digest = "sha256:other" },
		"policy":                      func(r *proposal.Run, _ *proposal.Plan) { r.Policy = "sha256:other" },
		"approval without a commit":   func(r *proposal.Run, _ *proposal.Plan) { r.HeadSHA, r.Approval.HeadSHA = "", "" },
		"approval without the plan":   func(r *proposal.Run, p *proposal.Plan) { r.PlanDigest, r.Approval.PlanDigest, p.Digest = "", "", "" },
		"approval without the policy": func(r *proposal.Run, _ *proposal.Plan) { r.Policy, r.Approval.Policy = "", "" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Ask}}
			plan, run := planOf("a", "b"), approved()
			plan.Digest = "sha256:plan"
			change(&run, &plan)
			report, err := w.stages().Run(t.Context(), plan, run)
			if err == nil || report.Error == nil || report.Error.Code != "approval.void" {
				t.Errorf("error %v, want approval.void", err)
			}
			if slices.Contains(w.did, "open sandbox") {
				t.Errorf("did %q, want nothing run", w.did)
			}
		})
	}
}

func TestCeiling(t *testing.T) {
	g := proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 1, Memory: proposal.GiB, Pids: 100, Disk: proposal.GiB, Files: 10, Output: proposal.MiB}}
	lowerGrant(&g, proposal.Limits{Wall: proposal.Duration(time.Second), CPUs: 2, Pids: 7})
	want := proposal.Limits{Wall: proposal.Duration(time.Second), CPUs: 1, Memory: proposal.GiB, Pids: 7, Disk: proposal.GiB, Files: 10, Output: proposal.MiB}
	if diff := cmp.Diff(want, g.Limits); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptionCodes(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	<-late.Done()
	for want, ctx := range map[string]context.Context{"run.cancelled": cancelled, "run.timeout": late} {
		if f := proposal.FailureOf(InterruptionError(ctx)); f.Code != want {
			t.Errorf("code %q, want %q", f.Code, want)
		}
	}
}
