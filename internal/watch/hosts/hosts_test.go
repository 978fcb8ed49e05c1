// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func reached(id string, counts proposal.Counts, list ...proposal.Reach) proposal.Record {
	return proposal.Record{Proposal: proposal.Proposal{ID: id}, Result: &proposal.Result{Observations: &proposal.Observations{Network: list, Counts: counts}}}
}

// What several commands and programs did with one destination is one row for each verdict, and
// a lookup is one only if nothing followed it.
func TestHostsOf(t *testing.T) {
	twice := reached("twice", proposal.Counts{})
	twice.Result.Retried = &proposal.Attempt{Observations: &proposal.Observations{Network: []proposal.Reach{{Kind: proposal.EventConnection, Name: "go.example", Port: 443, Count: 1, Sent: 3}}, Counts: proposal.Counts{Connections: 1}}}
	got := ListHosts([]proposal.Record{
		{Proposal: proposal.Proposal{ID: "none"}}, twice,
		reached("a", proposal.Counts{Lookups: 3, Connections: 3, Requests: 2, NetRefused: 2},
			proposal.Reach{Kind: proposal.EventLookup, Name: "evil.example", Program: "/usr/bin/curl", Refused: true, Rule: "egress.host", Count: 1},
			proposal.Reach{Kind: proposal.EventRequest, Name: "go.example", Port: 443, Program: "/usr/bin/pip", Refused: true, Rule: "egress.method", Count: 1, Sent: 7},
			proposal.Reach{Kind: proposal.EventLookup, Name: "go.example", Program: "/usr/bin/pip", Count: 1},
			proposal.Reach{Kind: proposal.EventLookup, Name: "gone.example", Code: "unresolved", Count: 1},
			proposal.Reach{Kind: proposal.EventConnection, Name: "go.example", Address: "192.0.2.1", Port: 443, Program: "/usr/bin/pip", Count: 2, Sent: 10, Received: 20},
			proposal.Reach{Kind: proposal.EventRequest, Name: "go.example", Port: 443, Program: "/usr/bin/pip", Count: 1, Sent: 5, Received: 5}),
		reached("b", proposal.Counts{Connections: 9},
			proposal.Reach{Kind: proposal.EventConnection, Name: "go.example", Address: "192.0.2.2", Port: 443, Program: "/usr/bin/git", Count: 1, Sent: 1, Received: 1 << 60},
			proposal.Reach{Kind: proposal.EventConnection, Address: "2001:db8::1", Port: 22, Watched: true, Rule: "acme.ssh", Count: 1}),
	})
	want := &proposal.Hosts{Unlisted: 7 + 1, Rows: []proposal.Host{
		{Host: "evil.example", Verdict: proposal.VerdictRefused, Rule: "egress.host", Commands: []string{"a"}, Programs: []string{"/usr/bin/curl"}},
		{Host: "go.example", Port: 443, Verdict: proposal.VerdictRefused, Rule: "egress.method", Commands: []string{"a"}, Programs: []string{"/usr/bin/pip"}},
		{Host: "go.example", Port: 443, Verdict: proposal.VerdictAllowed, Commands: []string{"twice", "a", "b"}, Programs: []string{"/usr/bin/pip", "/usr/bin/git"}, Sent: 14, Received: maxTraffic},
		{Host: "gone.example", Verdict: proposal.VerdictAllowed, Commands: []string{"a"}},
		{Host: "2001:db8::1", Port: 22, Verdict: proposal.VerdictWatched, Rule: "acme.ssh", Commands: []string{"b"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Rows[4].Destination() != "[2001:db8::1]:22" || got.Rows[0].Destination() != "evil.example" {
		t.Errorf("%s, %s", got.Rows[4].Destination(), got.Rows[0].Destination())
	}
	if ListHosts([]proposal.Record{{}, reached("a", proposal.Counts{Execs: 1})}) != nil {
		t.Error("a run without a network has hosts")
	}
}

// A command that tries many hosts cannot hide where data went, nor the reverse, and the rest is
// counted.
func TestHostsAreBounded(t *testing.T) {
	var records []proposal.Record
	for i := range 100 {
		var list []proposal.Reach
		for n := range 3 {
			list = append(list, proposal.Reach{Kind: proposal.EventConnection, Name: fmt.Sprintf("h%d-%d.example", i, n), Refused: true, Count: 1})
		}
		records = append(records, reached(fmt.Sprint("c", i), proposal.Counts{Connections: 3}, append(list[:2:2], proposal.Reach{Kind: proposal.EventConnection, Name: "go.example", Program: fmt.Sprint("/p", i), Count: 1})...))
	}
	passed := records[99].Result.Observations.Network
	for n := range 50 {
		passed = append(passed, proposal.Reach{Kind: proposal.EventConnection, Name: fmt.Sprintf("ok%d.example", n), Count: 1})
	}
	records[99].Result.Observations.Network = passed
	got := ListHosts(records)
	if len(got.Rows) != Max || got.Omitted != 251-Max || got.Rows[31].Verdict != proposal.VerdictRefused || got.Rows[32].Host != "go.example" {
		t.Errorf("%d rows, %d omitted, %+v", len(got.Rows), got.Omitted, got.Rows)
	}
	if h := got.Rows[32]; len(h.Commands) != maxWho || len(h.Programs) != maxWho || h.More != 2*(100-maxWho) {
		t.Errorf("%+v", h)
	}
	few := Select(got.Rows[31:34], 10)
	if len(few) != 3 || len(Select(got.Rows, 1)) != 1 || len(Select(got.Rows[:32], 10)) != 10 || len(Select(got.Rows[32:], 10)) != 10 {
		t.Error("room that one kind leaves is not used")
	}
}
