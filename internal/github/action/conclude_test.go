// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestConclude(t *testing.T) {
	ok := proposal.Totals{Proposed: 2, Allowed: 2, Succeeded: 2}
	failed := proposal.Totals{Proposed: 2, Allowed: 2, Succeeded: 1, Failed: 1}
	denied := proposal.Totals{Proposed: 2, Allowed: 1, Succeeded: 1, Denied: 1}
	asked := proposal.Totals{Proposed: 2, Allowed: 1, Succeeded: 1, Asked: 1}
	all := proposal.Totals{Proposed: 4, Allowed: 2, Succeeded: 1, Failed: 1, Denied: 1, Asked: 1}
	missing := proposal.Totals{Proposed: 2, Allowed: 2, Succeeded: 1, CouldNotRun: 1}
	before := proposal.Totals{Proposed: 2, Allowed: 2, Succeeded: 1, FailedBefore: 1}
	tests := []struct {
		name       string
		outcome    Outcome
		conclusion string
		fails      [5]bool // never, error, denied, failed, could-not-run
	}{
		{"nothing was proposed", Outcome{}, "success", [5]bool{}},
		{"success", Outcome{Totals: ok}, "success", [5]bool{}},
		{"failure", Outcome{Totals: failed}, "failure", [5]bool{false, false, false, true, true}},
		{"denied", Outcome{Totals: denied}, "denied", [5]bool{false, false, true, true, true}},
		{"asked", Outcome{Totals: asked}, "asked", [5]bool{}},
		{"failed, denied and asked", Outcome{Totals: all}, "failure", [5]bool{false, false, true, true, true}},
		{"could not run", Outcome{Totals: missing}, "neutral", [5]bool{false, false, false, false, true}},
		{"could not run, and failed", Outcome{Totals: proposal.Totals{Proposed: 2, Allowed: 2, Failed: 1, CouldNotRun: 1}}, "failure", [5]bool{false, false, false, true, true}},
		{"could not run, and denied", Outcome{Totals: proposal.Totals{Proposed: 2, Allowed: 1, Denied: 1, CouldNotRun: 1}}, "denied", [5]bool{false, false, true, true, true}},
		{"failed before", Outcome{Totals: before}, "neutral", [5]bool{}},
		{"failed before, and failed", Outcome{Totals: before.Add(failed)}, "failure", [5]bool{false, false, false, true, true}},
		{"not run", Outcome{Totals: proposal.Totals{Proposed: 1, Allowed: 1, NotRun: 1}}, "failure", [5]bool{false, false, false, true, true}},
		{"stopped", Outcome{Totals: ok, Stopped: true}, "error", [5]bool{false, true, true, true, true}},
		{"stopped and cancelled", Outcome{Totals: all, Stopped: true, Cancelled: true}, "error", [5]bool{false, true, true, true, true}},
		{"cancelled", Outcome{Totals: failed, Cancelled: true}, "cancelled", [5]bool{false, true, true, true, true}},
		{"skipped", Outcome{Skipped: true, Stopped: true}, "skipped", [5]bool{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, failOn := range []string{FailOnNever, FailOnError, FailOnDenied, FailOnFailed, FailOnCouldNotRun} {
				conclusion, fails := ConcludeJob(tt.outcome, failOn)
				if conclusion != tt.conclusion || fails != tt.fails[i] {
					t.Errorf("fail-on %s: %s, %v; want %s, %v", failOn, conclusion, fails, tt.conclusion, tt.fails[i])
				}
			}
			if _, fails := ConcludeJob(tt.outcome, "often"); fails != tt.fails[3] {
				t.Errorf("an unknown word fails %v", fails)
			}
		})
	}
}

func TestOutcomeOf(t *testing.T) {
	run := proposal.Record{Decision: proposal.Decision{Effect: proposal.Allow}, Result: &proposal.Result{Status: proposal.Exited}}
	deny := proposal.Record{Decision: points.DenyReason("r", "m", "s")}
	report := func(code string, records ...proposal.Record) proposal.Report {
		// The totals in a report are not trusted.
		r := proposal.Report{Records: records, Totals: proposal.Totals{Proposed: 99, Succeeded: 99}}
		if code != "" {
			r.Error = &proposal.Failure{Code: code}
		}
		return r
	}
	tests := []struct {
		name    string
		reports []proposal.Report
		want    Outcome
	}{
		{"none", nil, Outcome{Stopped: true}},
		{"one", []proposal.Report{report("", run)}, Outcome{Totals: proposal.Totals{Proposed: 1, Allowed: 1, Succeeded: 1}}},
		{"two", []proposal.Report{report("", run, deny), report("", deny)}, Outcome{Totals: proposal.Totals{Proposed: 3, Allowed: 1, Succeeded: 1, Denied: 2}}},
		{"one of two cancelled", []proposal.Report{report("", run), report("run.cancelled")},
			Outcome{Totals: proposal.Totals{Proposed: 1, Allowed: 1, Succeeded: 1}, Cancelled: true}},
		{"out of time is stopped", []proposal.Report{report("run.timeout")}, Outcome{Stopped: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, OutcomeOf(tt.reports...)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}
