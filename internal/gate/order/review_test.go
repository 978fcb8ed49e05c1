// SPDX-License-Identifier: Apache-2.0

package order

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A keeper is a log that can be read back.
type keeper struct {
	*world
	mu      sync.Mutex
	entries []journal.Entry
	fails   string // this kind of entry, with err
	err     error
	slow    time.Duration
}

func (k *keeper) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.entries[len(k.entries)-1].Kind
}

func (k *keeper) Write(kind string, v any) (int64, error) { return k.Append(kind, v) }

func (k *keeper) Append(kind string, v any) (int64, error) {
	time.Sleep(k.slow)
	body, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind == k.fails {
		return 0, k.err
	}
	k.entries = append(k.entries, journal.Entry{Kind: kind, Body: body})
	return int64(len(k.entries) - 1), nil
}

func reviewed(t *testing.T) (proposal.Report, *keeper, proposal.Plan) {
	t.Helper()
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Deny, "c": proposal.Allow, "d": proposal.Ask},
		results: map[string]proposal.Result{"c": {Status: proposal.Exited, ExitCode: 1}}}
	k := &keeper{world: w}
	h := w.stages()
	h.Log = k
	plan := planOf("a", "b", "c", "d")
	report, err := h.Run(t.Context(), plan, proposal.Run{ID: "1", HeadSHA: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	// In the form that a reader has: decoded from JSON.
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var read proposal.Report
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return read, k, plan
}

// THREATS 27: a report that contradicts its log or its policy is detected.
func TestReview(t *testing.T) {
	tests := map[string]struct {
		forge     func(*proposal.Report, *keeper)
		log, rule string // what the doubts must contain; "" for none
	}{
		"nothing":           {forge: func(*proposal.Report, *keeper) {}},
		"a pass for a fail": {forge: func(r *proposal.Report, _ *keeper) { r.Records[2].Result.ExitCode = 0 }, log: "result of command 3"},
		"test results that were not logged": {forge: func(r *proposal.Report, _ *keeper) {
			r.Records[2].Result.TestResults = proposal.Stream{Bytes: 1, SHA256: "00", Head: []byte("x")}
		}, log: "result of command 3"},
		"a deny that ran":  {forge: func(r *proposal.Report, _ *keeper) { r.Records[1].Decision.Effect = proposal.Allow }, log: "decision 2", rule: "the effect of proposal 2"},
		"another text":     {forge: func(r *proposal.Report, _ *keeper) { r.Records[0].Proposal.Run = "true" }, log: "decision 1", rule: "the text of proposal 1"},
		"another commit":   {forge: func(r *proposal.Report, _ *keeper) { r.Run.HeadSHA = "def" }, log: "the run"},
		"a record too few": {forge: func(r *proposal.Report, _ *keeper) { r.Records = r.Records[:3] }, log: "the log", rule: "the report 3"},
		"other totals":     {forge: func(r *proposal.Report, _ *keeper) { r.Totals.Failed = 0 }, log: "the end"},
		"a log cut short":  {forge: func(_ *proposal.Report, k *keeper) { k.entries = k.entries[:4] }, log: "ends before"},
		"a log with more": {forge: func(_ *proposal.Report, k *keeper) {
			k.entries = append(k.entries, journal.Entry{Kind: "end", Body: []byte("{}")})
		}, log: "not in the report"},
		"an entry that is no JSON": {forge: func(_ *proposal.Report, k *keeper) { k.entries[0].Body = []byte("{} {}") }, log: "the run"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report, k, plan := reviewed(t)
			test.forge(&report, k)
			if got := strings.Join(CompareLog(report, k.entries), "; "); (got == "") != (test.log == "") || !strings.Contains(got, test.log) {
				t.Errorf("against the log: %q, want %q", got, test.log)
			}
			doubts, barred, err := k.world.stages().RedecidePlan(t.Context(), plan, report)
			if err != nil || (barred > 0) != (name == "a deny that ran") {
				t.Fatal(barred, err)
			}
			if got := strings.Join(doubts, "; "); (got == "") != (test.rule == "") || !strings.Contains(got, test.rule) {
				t.Errorf("decided again: %q, want %q", got, test.rule)
			}
		})
	}
}

// Redecide counts what a report says ran and this policy would not have run: what policy denies, and
// what it asks about without a person's approval.
func TestBarred(t *testing.T) {
	approved := &proposal.Approval{}
	for name, test := range map[string]struct {
		ours, theirs proposal.Effect
		approval     *proposal.Approval
		want         int
	}{
		"allowed":                           {proposal.Allow, proposal.Allow, nil, 0},
		"denied and not run":                {proposal.Deny, proposal.Deny, nil, 0},
		"denied and run":                    {proposal.Deny, proposal.Allow, nil, 1},
		"denied and run as approved":        {proposal.Deny, proposal.Ask, approved, 1},
		"asked about and not run":           {proposal.Ask, proposal.Ask, nil, 0},
		"asked about and approved":          {proposal.Ask, proposal.Ask, approved, 0},
		"asked about and run":               {proposal.Ask, proposal.Allow, nil, 1},
		"asked about and run with approval": {proposal.Ask, proposal.Allow, approved, 0},
	} {
		w := &world{decide: map[string]proposal.Effect{"a": test.ours}}
		record := proposal.Record{Decision: proposal.Decision{Effect: test.theirs}, Approval: test.approval}
		_, barred, err := w.stages().RedecidePlan(t.Context(), planOf("a"), proposal.Report{Records: []proposal.Record{record}})
		if err != nil || barred != test.want {
			t.Errorf("%s: %d, %v; want %d", name, barred, err, test.want)
		}
	}
}
