// SPDX-License-Identifier: Apache-2.0

package order

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// CompareLog describes where report differs from the entries of its log. It quotes neither.
// Both may be untrusted: that they agree proves only that they belong together.
func CompareLog(report proposal.Report, entries []journal.Entry) []string {
	var doubts []string
	entries, apart := separateBackground(report, entries)
	for i, r := range report.Records {
		if r.Result != nil && r.Result.Cached != nil && VerifyCached(*r.Result) != nil {
			doubts = append(doubts, fmt.Sprintf("the kept result of command %d is not proved", i+1))
		}
	}
	for _, w := range expectedEntries(report) {
		if w.record != nil && w.record.Background {
			if doubt := w.compareEntries(apart[w.record.Proposal.ID]); doubt != "" {
				doubts = append(doubts, doubt)
			}
			delete(apart, w.record.Proposal.ID)
			continue
		}
		if w.record != nil {
			var doubt string
			if entries, doubt = compareEvents(*w.record, w.seen, w.what, entries); doubt != "" {
				doubts = append(doubts, doubt)
			}
		}
		if len(entries) == 0 {
			return append(doubts, fmt.Sprintf("the log ends before %s", w.what))
		}
		if entries[0].Kind != w.kind || !sameJSON(entries[0].Body, w.body) {
			doubts = append(doubts, fmt.Sprintf("the log differs about %s", w.what))
		}
		entries = entries[1:]
	}
	if more := len(entries) + len(apart); more > 0 {
		doubts = append(doubts, fmt.Sprintf("the log has %d entries that are not in the report", more))
	}
	return doubts
}

// separateBackground takes the events and results of commands in the background off the entries, which
// may be between those of others: after the command's start, before the end.
func separateBackground(
	report proposal.Report, entries []journal.Entry,
) (rest []journal.Entry, apart map[string][]journal.Entry) {
	background, started := map[string]bool{}, map[string]bool{}
	for _, r := range report.Records {
		background[r.Proposal.ID] = r.Background && report.Run.Session
	}
	apart = map[string][]journal.Entry{}
	for i, e := range entries {
		var of struct {
			ID string `json:"id"`
		}
		if i < len(entries)-1 && slices.Contains([]string{"start", "events", "result"}, e.Kind) &&
			json.Unmarshal(e.Body, &of) == nil && background[of.ID] {
			if e.Kind != "start" && started[of.ID] {
				apart[of.ID] = append(apart[of.ID], e)
				continue
			}
			started[of.ID] = true
		}
		rest = append(rest, e)
	}
	return rest, apart
}

// compareEntries returns in what the entries of a command's outcome differ from w, or "".
func (w expectation) compareEntries(entries []journal.Entry) string {
	entries, doubt := compareEvents(*w.record, w.seen, w.what, entries)
	switch {
	case doubt != "":
		return doubt
	case len(entries) == 0:
		return fmt.Sprintf("the log ends before %s", w.what)
	case len(entries) > 1 || entries[0].Kind != w.kind || !sameJSON(entries[0].Body, w.body):
		return fmt.Sprintf("the log differs about %s", w.what)
	}
	return ""
}

type expectation struct {
	kind, what string
	body       any
	record     *proposal.Record       // before the outcome of a run, which its events may precede
	seen       *proposal.Observations // their reported form
}

// expectedEntries is the log that Run writes beside report: see package journal.
func expectedEntries(report proposal.Report) []expectation {
	run := report.Run
	run.WallMS = 0 // known only at the end
	list := []expectation{{kind: "run", what: "the run", body: run}}
	if run.Session {
		list = append(list, expectedInSession(report)...)
	} else {
		for i, r := range report.Records {
			list = append(list, expectedDecision(i, r))
		}
		for i, r := range report.Records {
			list = append(list, expectedRun(i, r)...)
		}
		if d := report.Differences; d != nil {
			list = append(list, expectation{kind: "transfer", what: "the differences",
				body: transferOf(*d, len(report.Records))})
		}
		list = append(list, expectedOnBase(report.Base)...)
	}
	return append(list, expectation{kind: "end", what: "the end",
		body: journal.End{Totals: report.Totals, Error: report.Error}})
}

// expectedOnBase returns the entries of what ran on the base.
func expectedOnBase(base *proposal.BaseRun) (list []expectation) {
	if base == nil {
		return nil
	}
	list = append(list, expectation{kind: "base", what: "the base", body: journal.Base{Commit: base.Commit}})
	for i, r := range base.Records {
		list = append(list, expectedDecision(i, r))
	}
	for i, r := range base.Records {
		list = append(list, expectedRun(i, r)...)
	}
	for i := range list[1:] {
		list[i+1].what += " on the base"
	}
	return list
}

// expectedInSession returns each proposal's entries together, with the transfers
// between them.
func expectedInSession(report proposal.Report) (list []expectation) {
	transfers := report.Transfers
	next := func(records int) {
		for len(transfers) > 0 && transfers[0].After <= records {
			list = append(list, expectation{kind: "transfer",
				what: fmt.Sprintf("transfer %d", len(report.Transfers)-len(transfers)+1), body: transfers[0]})
			transfers = transfers[1:]
		}
	}
	for i, r := range report.Records {
		next(i)
		list = append(append(list, expectedDecision(i, r)), expectedRun(i, r)...)
		if result, ok := list[len(list)-1].body.(journal.Result); ok {
			result.Result.Displays = r.Result.Displays // a session's report has digests already
			list[len(list)-1].body = result
		}
	}
	next(len(report.Records))
	return list
}

func expectedDecision(i int, r proposal.Record) expectation {
	return expectation{kind: "decision", what: fmt.Sprintf("decision %d", i+1), body: journal.NewDecision(r)}
}

// expectedRun returns the entries of record i's run, if it ran.
func expectedRun(i int, r proposal.Record) []expectation {
	if !r.Runnable() || r.Result == nil || r.Result.Status == proposal.NotRun {
		return nil
	}
	if r.Result.Cached != nil {
		return []expectation{{kind: "cached", what: fmt.Sprintf("the kept result of command %d", i+1),
			body: journal.NewCached(r)}}
	}
	if r.Result.FromLayer() {
		return []expectation{{kind: "result", what: fmt.Sprintf("the result of command %d", i+1),
			body: journal.NewResult(r)}}
	}
	list := []expectation{{kind: "start", what: fmt.Sprintf("the start of command %d", i+1),
		body: journal.NewStart(r, false)}}
	if first := r.Result.Retried; first != nil {
		list = append(list,
			expectation{kind: "attempt", what: fmt.Sprintf("the first run of command %d", i+1),
				body: journal.NewAttempt(r, *first), record: &r, seen: first.Observations},
			expectation{kind: "start", what: fmt.Sprintf("the second start of command %d", i+1),
				body: journal.NewStart(r, true)})
	}
	return append(list, expectation{kind: "result", what: fmt.Sprintf("the result of command %d", i+1),
		body: journal.NewResult(r), record: &r, seen: r.Result.Observations})
}

// compareEvents takes the events before the outcome of a run off the entries, and
// returns in what the report's account of them differs from what they give, or "".
func compareEvents(
	r proposal.Record, reported *proposal.Observations, what string, entries []journal.Entry,
) ([]journal.Entry, string) {
	var batches []journal.Events
	next := int64(0)
	for len(entries) > 0 && entries[0].Kind == "events" {
		var e journal.Events
		if json.Unmarshal(entries[0].Body, &e) != nil || e.ID != r.Proposal.ID || e.Decision != r.Entry ||
			e.First != next || e.More < 0 || e.Flows != nil && !e.Flows.Valid() {
			return entries, fmt.Sprintf("the log's events are out of order before %s", what)
		}
		batches = append(batches, e)
		next += int64(len(e.Events))
		entries = entries[1:]
	}
	switch {
	case reported == nil && next > 0:
		return entries, fmt.Sprintf("the log has events that are not in %s", what)
	case reported != nil && !eventsAddUpTo(batches, *reported):
		return entries, fmt.Sprintf("the log's events differ from %s", what)
	}
	return entries, ""
}

// eventsAddUpTo reports whether the events add up to reported, except for fields that no event has.
func eventsAddUpTo(batches []journal.Events, reported proposal.Observations) bool {
	seen := observe.RecountEvents(batches)
	seen.Counts.Dropped, seen.Complete, seen.Findings = reported.Counts.Dropped, reported.Complete, reported.Findings
	encoded, err := json.Marshal(seen)
	return err == nil && sameJSON(encoded, reported)
}

func sameJSON(data []byte, v any) bool {
	encoded, err := json.Marshal(v)
	return err == nil && reflect.DeepEqual(decodeJSON(data), decodeJSON(encoded))
}

func decodeJSON(data []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return data // unequal to anything that decodes
	}
	return v
}

// redecideBase decides again what report says of the base.
func (c Checker) redecideBase(
	ctx context.Context, ours []proposal.Record, report proposal.Report,
) (doubts []string, barred int, err error) {
	var plan proposal.Plan
	for _, r := range report.Base.Records {
		id, ok := baseline.CommandID(r.Proposal.ID)
		i := slices.IndexFunc(ours, func(o proposal.Record) bool { return o.Proposal.ID == id })
		if !ok || i < 0 {
			return []string{"the report has a command on the base that is not in the plan"}, 0, nil
		}
		p := ours[i].Proposal
		p.ID, p.Needs, p.Outputs, p.Cache = r.Proposal.ID, r.Proposal.Needs, nil, false
		plan.Proposals = append(plan.Proposals, p)
	}
	report.Records, report.Base = report.Base.Records, nil
	doubts, barred, err = c.RedecidePlan(ctx, plan, report)
	for i := range doubts {
		doubts[i] += " (on the base)"
	}
	return doubts, barred, err
}

// RedecidePlan decides plan again and describes where report differs, without quoting it.
// barred counts the commands that this policy would not have run, and that ran. An error
// means that policy could not answer.
func (c Checker) RedecidePlan(
	ctx context.Context, plan proposal.Plan, report proposal.Report,
) (doubts []string, barred int, err error) {
	records, err := c.Check(ctx, plan)
	if err != nil {
		return nil, 0, err
	}
	if len(report.Records) != len(records) {
		doubts = append(doubts, fmt.Sprintf("the plan has %d proposals, the report %d", len(records),
			len(report.Records)))
	}
	for i := range min(len(records), len(report.Records)) {
		if len(report.Records[i].Redacted) > 0 {
			doubts = append(doubts, fmt.Sprintf("proposal %d contained a secret, which was redacted: it could not be decided again", i+1))
			continue
		}
		if what := firstDifference(records[i], report.Records[i]); what != "" {
			doubts = append(doubts, fmt.Sprintf("%s of proposal %d differs from what this plan and policy give", what,
				i+1))
		}
		if isBarred(records[i], report.Records[i]) {
			barred++
		}
	}
	if report.Base != nil {
		more, n, err := c.redecideBase(ctx, records, report)
		return append(doubts, more...), barred + n, err
	}
	return doubts, barred, nil
}

// isBarred reports whether a report's record ran, and ours would not have.
func isBarred(ours, theirs proposal.Record) bool {
	effect := ours.Decision.Effect
	return theirs.Runnable() && effect != proposal.Allow && (effect != proposal.Ask || theirs.Approval == nil)
}

// firstDifference names the first part in which a report's record differs from ours. Grants
// are ignored: a ceiling may have lowered them.
func firstDifference(ours, theirs proposal.Record) string {
	ours.Decision.Grant, theirs.Decision.Grant = nil, nil
	parts := []struct {
		name string
		a, b any
	}{
		{"the text", ours.Proposal, theirs.Proposal},
		{"the effect", ours.Decision.Effect, theirs.Decision.Effect},
		{"the analysis", ours.Analysis, theirs.Analysis},
		{"the decision", ours.Decision, theirs.Decision},
	}
	for _, p := range parts {
		a, err := json.Marshal(p.a)
		if err != nil || !sameJSON(a, p.b) {
			return p.name
		}
	}
	return ""
}
