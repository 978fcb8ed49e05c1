// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func reached(id string, counts Counts, list ...Reach) Record {
	return Record{Proposal: Proposal{ID: id}, Result: &Result{Observations: &Observations{Network: list, Counts: counts}}}
}

// What several commands and programs did with one destination is one row for each verdict, and
// a lookup is one only if nothing followed it.
func TestHostsOf(t *testing.T) {
	twice := reached("twice", Counts{})
	twice.Result.Retried = &Attempt{Observations: &Observations{Network: []Reach{{Kind: EventConnection, Name: "go.example", Port: 443, Count: 1, Sent: 3}}, Counts: Counts{Connections: 1}}}
	got := HostsOf([]Record{
		{Proposal: Proposal{ID: "none"}}, twice,
		reached("a", Counts{Lookups: 3, Connections: 3, Requests: 2, NetRefused: 2},
			Reach{Kind: EventLookup, Name: "evil.example", Program: "/usr/bin/curl", Refused: true, Rule: "egress.host", Count: 1},
			Reach{Kind: EventRequest, Name: "go.example", Port: 443, Program: "/usr/bin/pip", Refused: true, Rule: "egress.method", Count: 1, Sent: 7},
			Reach{Kind: EventLookup, Name: "go.example", Program: "/usr/bin/pip", Count: 1},
			Reach{Kind: EventLookup, Name: "gone.example", Code: "unresolved", Count: 1},
			Reach{Kind: EventConnection, Name: "go.example", Address: "192.0.2.1", Port: 443, Program: "/usr/bin/pip", Count: 2, Sent: 10, Received: 20},
			Reach{Kind: EventRequest, Name: "go.example", Port: 443, Program: "/usr/bin/pip", Count: 1, Sent: 5, Received: 5}),
		reached("b", Counts{Connections: 9},
			Reach{Kind: EventConnection, Name: "go.example", Address: "192.0.2.2", Port: 443, Program: "/usr/bin/git", Count: 1, Sent: 1, Received: 1 << 60},
			Reach{Kind: EventConnection, Address: "2001:db8::1", Port: 22, Watched: true, Rule: "acme.ssh", Count: 1}),
	})
	want := &Hosts{Unlisted: 7 + 1, Rows: []Host{
		{Host: "evil.example", Verdict: VerdictRefused, Rule: "egress.host", Commands: []string{"a"}, Programs: []string{"/usr/bin/curl"}},
		{Host: "go.example", Port: 443, Verdict: VerdictRefused, Rule: "egress.method", Commands: []string{"a"}, Programs: []string{"/usr/bin/pip"}},
		{Host: "go.example", Port: 443, Verdict: VerdictAllowed, Commands: []string{"twice", "a", "b"}, Programs: []string{"/usr/bin/pip", "/usr/bin/git"}, Sent: 14, Received: maxTraffic},
		{Host: "gone.example", Verdict: VerdictAllowed, Commands: []string{"a"}},
		{Host: "2001:db8::1", Port: 22, Verdict: VerdictWatched, Rule: "acme.ssh", Commands: []string{"b"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Rows[4].Destination() != "[2001:db8::1]:22" || got.Rows[0].Destination() != "evil.example" {
		t.Errorf("%s, %s", got.Rows[4].Destination(), got.Rows[0].Destination())
	}
	if HostsOf([]Record{{}, reached("a", Counts{Execs: 1})}) != nil {
		t.Error("a run without a network has hosts")
	}
}

// A command that tries many hosts cannot hide where data went, nor the reverse, and the rest is
// counted.
func TestHostsAreBounded(t *testing.T) {
	var records []Record
	for i := range 100 {
		var list []Reach
		for n := range 3 {
			list = append(list, Reach{Kind: EventConnection, Name: fmt.Sprintf("h%d-%d.example", i, n), Refused: true, Count: 1})
		}
		records = append(records, reached(fmt.Sprint("c", i), Counts{Connections: 3}, append(list[:2:2], Reach{Kind: EventConnection, Name: "go.example", Program: fmt.Sprint("/p", i), Count: 1})...))
	}
	passed := records[99].Result.Observations.Network
	for n := range 50 {
		passed = append(passed, Reach{Kind: EventConnection, Name: fmt.Sprintf("ok%d.example", n), Count: 1})
	}
	records[99].Result.Observations.Network = passed
	got := HostsOf(records)
	if len(got.Rows) != MaxHosts || got.Omitted != 251-MaxHosts || got.Rows[31].Verdict != VerdictRefused || got.Rows[32].Host != "go.example" {
		t.Errorf("%d rows, %d omitted, %+v", len(got.Rows), got.Omitted, got.Rows)
	}
	if h := got.Rows[32]; len(h.Commands) != maxWho || len(h.Programs) != maxWho || h.More != 2*(100-maxWho) {
		t.Errorf("%+v", h)
	}
	few := Selected(got.Rows[31:34], 10)
	if len(few) != 3 || len(Selected(got.Rows, 1)) != 1 || len(Selected(got.Rows[:32], 10)) != 10 || len(Selected(got.Rows[32:], 10)) != 10 {
		t.Error("room that one kind leaves is not used")
	}
}
