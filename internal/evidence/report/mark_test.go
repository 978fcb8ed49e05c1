// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The heading's mark and the check's conclusion are the same verdict, whatever outcomes a run has.
func TestMarkAgreesWithCheck(t *testing.T) {
	one := func(effect proposal.Effect, result *proposal.Result) proposal.Record {
		return proposal.Record{Proposal: proposal.Proposal{ID: "a", Run: "x"}, Decision: proposal.Decision{Effect: effect}, Result: result}
	}
	exited := func(code int) *proposal.Result { return &proposal.Result{Status: proposal.Exited, ExitCode: code} }
	records := [...]proposal.Record{
		failed:    one(proposal.Allow, exited(1)),
		broken:    one(proposal.Allow, &proposal.Result{Status: proposal.Signaled, ExitCode: -1, Detail: proposal.Result{Killed: proposal.KilledInterrupted}.KilledDetail()}),
		denied:    one(proposal.Deny, nil),
		asked:     one(proposal.Ask, nil),
		unable:    one(proposal.Allow, exited(1)),
		before:    one(proposal.Allow, exited(1)),
		notRun:    one(proposal.Allow, &proposal.Result{Status: proposal.NotRun, ExitCode: -1, Detail: "the run's time budget of 1m0s is used up"}),
		succeeded: one(proposal.Allow, exited(0)),
	}
	records[unable].Cause = &proposal.Cause{Kind: "tool"}
	records[before].Base = &proposal.Comparison{Verdict: proposal.BaseSame}
	marks := map[string][]string{"failure": {"❌", "🚫", "⛔"}, "action_required": {"✋"}, "neutral": {"➖"}, "success": {"✅"}}
	for set := range 1 << len(records) {
		var list []proposal.Record
		for k, r := range records {
			if r.Outcome() != kind(k) {
				t.Fatalf("record %d has the outcome %v", k, r.Outcome())
			}
			if set>>k&1 == 1 {
				list = append(list, r)
			}
		}
		p := Page{Parts: []Part{{Report: proposal.Report{Records: list, Totals: proposal.Total(list)}}}}
		if mark, conclusion := p.Section().Mark, p.Check().Conclusion; !slices.Contains(marks[conclusion], mark) {
			t.Errorf("%s: the mark is %s and the conclusion %s", tallyRecords(list), mark, conclusion)
		}
	}
}
