// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// full is a Record whose Result has everything that an entry leaves out.
func full() proposal.Record {
	stream := proposal.Stream{Bytes: 2, SHA256: "00", Head: []byte("hi"), Tail: []byte("ho")}
	seen := &proposal.Observations{Complete: true, Execs: []proposal.Event{{Kind: "exec"}}, Notable: []proposal.Event{{Kind: "write"}}, Network: []proposal.Reach{{Kind: "lookup"}}}
	return proposal.Record{Proposal: proposal.Proposal{ID: "a", Run: "ls"}, Entry: 3, Decision: proposal.Decision{Effect: proposal.Allow},
		Result: &proposal.Result{Status: proposal.Exited, Stdout: stream, Stderr: stream, TestResults: stream, Observations: seen,
			Retried: &proposal.Attempt{Crash: "SIGSEGV", Stdout: stream, Stderr: stream, Observations: seen}}}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is written of each kind is what a reader has.
func TestDecode(t *testing.T) {
	r, flow := full(), proposal.Event{Kind: proposal.EventLookup, Flow: &proposal.Flow{Code: "policy"}}
	var flows FlowCounts
	flows.Add(flow)
	totals := proposal.Totals{Proposed: 1}
	for kind, test := range map[string]struct {
		entry any
		want  func(LogEvent) bool
	}{
		"run": {proposal.Run{ID: "7"}, func(l LogEvent) bool { return l.Run.ID == "7" }},
		"decision": {NewDecision(r), func(l LogEvent) bool {
			return l.ID == "a" && l.Proposal.Run == "ls" && l.Decision.Effect == proposal.Allow
		}},
		"start":    {NewStart(r, true), func(l LogEvent) bool { return l.ID == "a" && l.Again }},
		"events":   {Events{ID: "a", First: 9, More: 2, Flows: &flows}, func(l LogEvent) bool { return l.ID == "a" && l.First == 9 && l.More == 2 && l.Flows == 1 }},
		"attempt":  {NewAttempt(r, *r.Result.Retried), func(l LogEvent) bool { return l.ID == "a" && l.Attempt.Crash == "SIGSEGV" }},
		"result":   {NewResult(r), func(l LogEvent) bool { return l.ID == "a" && l.Result.Status == proposal.Exited }},
		"transfer": {proposal.Transfer{Kind: "put"}, func(l LogEvent) bool { return l.Transfer.Kind == "put" }},
		"end":      {End{Totals: totals}, func(l LogEvent) bool { return *l.Totals == totals && l.Error == nil }},
	} {
		l, err := Entry{Kind: kind, Body: encode(t, test.entry)}.Decode()
		if err != nil || !test.want(l) {
			t.Errorf("%s: %+v, %v", kind, l, err)
		}
		if _, err := (Entry{Kind: kind, Body: []byte("[7]")}).Decode(); err == nil {
			t.Errorf("%s: another document is read", kind)
		}
	}
	if _, err := (Entry{Kind: "other", Body: []byte("{}")}).Decode(); err == nil {
		t.Error("an unknown kind is read")
	}
}

// Entries leave out what a digest or other entries hold, and leave the Record alone.
func TestStripped(t *testing.T) {
	r := full()
	for _, s := range []proposal.Stream{NewResult(r).Result.Stdout, NewResult(r).Result.Stderr, NewResult(r).Result.TestResults, NewResult(r).Result.Retried.Stdout, NewAttempt(r, *r.Result.Retried).Attempt.Stderr} {
		if s.Head != nil || s.Tail != nil || s.Bytes != 2 || s.SHA256 != "00" {
			t.Errorf("stream %+v", s)
		}
	}
	for _, o := range []*proposal.Observations{NewResult(r).Result.Observations, NewResult(r).Result.Retried.Observations, NewAttempt(r, *r.Result.Retried).Attempt.Observations} {
		if o.Execs != nil || o.Notable != nil || o.Network != nil || !o.Complete {
			t.Errorf("observations %+v", o)
		}
	}
	if diff := cmp.Diff(full(), r); diff != "" {
		t.Errorf("the Record was changed (-want +got):\n%s", diff)
	}
}

func TestFlowCounts(t *testing.T) {
	var f FlowCounts
	refused, observed := &proposal.Flow{Code: "policy"}, &proposal.Flow{Decision: proposal.EgressDecision{Effect: proposal.Allow, Observed: true}}
	for _, e := range []proposal.Event{{Kind: proposal.EventLookup, Flow: refused}, {Kind: proposal.EventConnection, Flow: observed}, {Kind: proposal.EventRequest, Flow: observed}, {Kind: proposal.EventDatagram, Flow: refused}} {
		f.Add(e)
	}
	c := proposal.Counts{Lookups: 10}
	f.AddTo(&c)
	if diff := cmp.Diff(proposal.Counts{Lookups: 11, Connections: 1, Requests: 1, Datagrams: 1, NetRefused: 2, NetWatched: 2}, c); diff != "" || f.countEvents() != 4 {
		t.Errorf("%d in all, counts (-want +got):\n%s", f.countEvents(), diff)
	}
	if !f.Valid() || (FlowCounts{Watched: -1}).Valid() {
		t.Error("a negative count is valid, or another is not")
	}
}
