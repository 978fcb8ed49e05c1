// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// networkedRun is a run of a plan that fetches in its setup and then tries more.
func networkedRun() proposal.Report {
	const pip, curl, refused = "/usr/bin/python3.13", "/usr/bin/curl", "no rule of the policy lets this command reach `evil.example`"
	deps := calling(ran("deps", "pip install -r requirements.txt", proposal.Exited, 0, "Successfully installed demo-1.0\n", ""), "pip")
	deps.Proposal.Network, deps.Proposal.Phase = []string{"registry:pypi"}, proposal.PhaseSetup
	deps.Result.Observations = &proposal.Observations{
		Programs: []proposal.Program{
			{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: proposal.LayerRootfs, Runs: 1},
			{Parent: 0, Path: pip, Name: "pip", Script: "/usr/bin/pip", Layer: proposal.LayerRootfs, Runs: 1},
			{Parent: 1, Path: curl, Name: "curl", Layer: proposal.LayerRootfs, Runs: 3},
		},
		Execs: []proposal.Event{}, Notable: []proposal.Event{},
		Network: []proposal.Reach{
			{Kind: proposal.EventLookup, Name: "evil.example", Program: curl, Protocol: "udp", Refused: true, Code: "policy", Rule: "egress.no-rule", Message: refused, Suggestion: "name the host in `network`, and let policy grant it", Count: 3},
			{Kind: proposal.EventRequest, Name: "pypi.example", Port: 443, Protocol: "https", Program: pip, Refused: true, Code: "policy", Rule: "egress.registry-read", Message: "a registry is only read", Count: 1, Sent: 812, Calls: []string{"POST /legacy/"}},
			{Kind: proposal.EventConnection, Name: "pypi.example", Address: "203.0.113.9", Port: 443, Protocol: "tls", SNI: "evil.example", Refused: true, Code: "mismatch", Rule: "egress.mismatch", Message: "the TLS hello names `evil.example`, the connection is for `pypi.example`", Count: 1, Sent: 517},
			{Kind: proposal.EventConnection, Address: "169.254.169.254", Port: 80, Protocol: "tcp", Program: curl, Refused: true, Code: "address", Count: 2},
			{Kind: proposal.EventDatagram, Address: "192.0.2.1", Port: 443, Protocol: "udp", Program: curl, Refused: true, Code: "policy", Rule: "egress.datagram", Count: 1},
			{Kind: proposal.EventLookup, Name: "stats.example", Program: pip, Protocol: "udp", Watched: true, Rule: "acme.no-telemetry", Message: "telemetry stays here", Count: 1},
			{Kind: proposal.EventLookup, Name: "pypi.example", Program: pip, Protocol: "udp", Count: 2},
			{Kind: proposal.EventRequest, Name: "pypi.example", Port: 443, Protocol: "https", Program: pip, Count: 12, Sent: 4000, Received: 5900000, Calls: []string{"GET /simple/demo/", "GET /simple/six/", "GET /packages/demo-1.0.whl", "HEAD /packages/six-1.0.whl"}},
			{Kind: proposal.EventConnection, Name: "pypi.example", Address: "203.0.113.9", Port: 443, Protocol: "https", Program: pip, Count: 2, Sent: 5123, Received: 6012345},
			{Kind: proposal.EventConnection, Name: "files.example", Address: "203.0.113.10", Port: 443, Protocol: "tcp", Program: pip, Code: "unreachable", Count: 1},
		},
		Findings: []proposal.Finding{},
		Counts:   proposal.Counts{Execs: 5, Predicted: 2, Exits: 5, Lookups: 6, Connections: 6, Requests: 13, Datagrams: 1, NetRefused: 8, NetWatched: 1}, Complete: true,
	}
	unit := calling(ran("unit", "pytest -q", proposal.Exited, 1, "1 failed\n", ""), "pytest")
	unit.Result.Observations = &proposal.Observations{
		Programs: []proposal.Program{{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: proposal.LayerRootfs, Runs: 1}},
		Execs:    []proposal.Event{}, Notable: []proposal.Event{}, Findings: []proposal.Finding{},
		Network: []proposal.Reach{{Kind: proposal.EventConnection, Address: "2001:db8::5", Port: 22, Protocol: "tcp", Refused: true, Code: "policy", Rule: "egress.no-rule", Message: "no rule lets it", Count: 1}},
		Counts:  proposal.Counts{Execs: 1, Predicted: 1, Connections: 1, NetRefused: 1}, Complete: true,
	}
	r := finish(proposal.Report{Records: []proposal.Record{deps, unit}})
	r.Run.Enforced[0] = "gVisor sandbox, network only as granted, through the gateway, no credentials, empty environment"
	return r
}

// observedNetworkRun is a run in which the network was observed and not enforced.
func observedNetworkRun() proposal.Report {
	r := networkedRun()
	r.Records = r.Records[:1]
	o := r.Records[0].Result.Observations
	o.Network, o.Counts.NetRefused = o.Network[3:], 3
	for i := range o.Network {
		n := &o.Network[i]
		if n.Observed = !n.Refused; n.Name == "files.example" {
			n.Watched, n.Rule, n.Message, n.Code = true, "egress.host", "files.example was not granted to this command", ""
		}
	}
	o.Counts.Lookups, o.Counts.Connections, o.Counts.Requests, o.Counts.NetWatched = 3, 5, 12, 2
	r = finish(r)
	r.Run.NetworkObserved, r.Run.Unenforced = true, []string{"the network: commands could connect to every public address"}
	return r
}

// A run whose network was only observed is never shown as a plain success, and only such a run
// has destinations with that verdict.
func TestNetworkObserved(t *testing.T) {
	r := observedNetworkRun()
	got := Markdown(r)
	for _, want := range []string{"## ⚠️ fumehood: 1 succeeded", "Not enforced in this run:", "the network: commands could connect", "👁 observed", "<tr><th>network</th><td><code>observe</code></td></tr>"} {
		if !strings.Contains(got, want) {
			t.Errorf("the comment does not say %q:\n%s", want, got)
		}
	}
	data := document(t, r)
	if _, err := Read(data, len(data)); err != nil {
		t.Error(err)
	}
	r.Run.NetworkObserved = false
	if _, err := Read(document(t, r), 1<<20); err == nil || !strings.Contains(err.Error(), "observed") {
		t.Errorf("observed in a run that enforces: %v", err)
	}
	r = observedNetworkRun()
	r.Hosts.Rows[0].Sent++
	if _, err := Read(document(t, r), 1<<20); err == nil || !strings.Contains(err.Error(), "hosts") {
		t.Errorf("hosts that the records do not have: %v", err)
	}
}

// oddReaches returns network events with s in every text field.
func oddReaches(s string) []proposal.Reach {
	r := proposal.Reach{Kind: proposal.EventConnection, Name: s, Address: s, Port: 443, Protocol: s, SNI: s, Program: s, Refused: true, Code: s, Rule: s, Message: s, Suggestion: s, Count: 2, Sent: 1, Received: 1, Calls: []string{s, s}}
	raw, datagram, other, watched, passed, named := r, r, r, r, r, r
	raw.Name, raw.Rule, raw.Message = "", "", ""
	datagram.Kind, other.Kind = proposal.EventDatagram, s
	watched.Refused, watched.Watched = false, true
	passed.Refused, passed.Kind = false, proposal.EventRequest
	named.Refused, named.Kind = false, proposal.EventLookup
	return []proposal.Reach{r, raw, datagram, other, watched, passed, named}
}

// A success that hides a refusal is not shown as a plain success, at the top or as
// a check.
func TestNetworkRefusalsAtTheTop(t *testing.T) {
	r := networkedRun()
	r.Records = r.Records[:1]
	r.Totals = proposal.Total(r.Records)
	top, _, _ := strings.Cut(Markdown(r), "<table>")
	for _, want := range []string{"1 command tried to reach hosts that are not allowed</b>: <code>evil.example</code>, <code>pypi.example:443</code>, <code>169.254.169.254:80</code>, 1 more (8 attempts, by <code>deps</code>)", "1 command still succeeded"} {
		if !strings.Contains(top, want) {
			t.Errorf("the top does not say %q:\n%s", want, top)
		}
	}
	if c := (Page{Parts: []Part{{Report: r}}}).Check(); c.Conclusion != "neutral" || !strings.HasSuffix(c.Title, "(network refused)") {
		t.Errorf("check %s, %q", c.Conclusion, c.Title)
	}
	o := r.Records[0].Result.Observations
	o.Network, o.Counts.NetRefused, o.Counts.NetWatched = o.Network[6:], 0, 0
	if c := (Page{Parts: []Part{{Report: r}}}).Check(); c.Conclusion != "success" {
		t.Errorf("of what was let through: check %s, %q", c.Conclusion, c.Title)
	}
	if got := Markdown(r); strings.Contains(got, "not allowed") || !strings.Contains(got, "<li>network, allowed:") {
		t.Errorf("of what was let through:\n%s", got)
	}
}

// Refusals beyond the listed ones are still shown at the top.
func TestNetworkRefusalsUnlisted(t *testing.T) {
	r := networkedRun()
	r.Records[0].Result.Observations.Network = []proposal.Reach{}
	got := Markdown(r)
	if !strings.Contains(got, "(9 attempts, by <code>deps</code>, <code>unit</code>)") || !strings.Contains(got, "network, refused: 8") {
		t.Errorf("got\n%s", got)
	}
}

func TestTrips(t *testing.T) {
	lookup := proposal.Reach{Kind: proposal.EventLookup, Name: "a.example", Program: "/x", Count: 2}
	lost := proposal.Reach{Kind: proposal.EventLookup, Name: "b.example", Code: "unresolved", Count: 1}
	connection := proposal.Reach{Kind: proposal.EventConnection, Name: "a.example", Port: 443, Program: "/y", Count: 1, Sent: 7, Received: 9}
	request := proposal.Reach{Kind: proposal.EventRequest, Name: "a.example", Port: 443, Program: "/y", Count: 3, Sent: 5, Received: 8, Calls: []string{"GET /"}}
	for _, tt := range []struct {
		name string
		list []proposal.Reach
		want []hostTrip
	}{
		{"looked up only", []proposal.Reach{lookup}, []hostTrip{{place: "a.example", program: "/x", lookups: 2}}},
		{"looked up and connected", []proposal.Reach{lookup, connection}, []hostTrip{{place: "a.example:443", program: "/y", connections: 1, sent: 7, received: 9}}},
		{"requests within", []proposal.Reach{request, connection, request}, []hostTrip{{place: "a.example:443", program: "/y", connections: 1, requests: 6, sent: 7, received: 9, calls: []string{"GET /"}}}},
		{"not found", []proposal.Reach{lost}, []hostTrip{{place: "b.example", lookups: 1, codes: []string{"unresolved"}}}},
	} {
		if diff := cmp.Diff(tt.want, tripsOf(tt.list), cmp.AllowUnexported(hostTrip{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The reasons in an untrusted report are not shown as fumehood's own words.
func TestForeignNetwork(t *testing.T) {
	r := networkedRun()
	r.Records[0].Result.Observations.Network[0].Message = "approved and harmless"
	got := Page{Parts: []Part{{Report: r, Foreign: true, Decided: true}}}.Markdown()
	const s = "approved and harmless"
	if !strings.Contains(got, "<code>"+s+"</code>") || strings.Contains(strings.ReplaceAll(got, "<code>"+s+"</code>", ""), s) {
		t.Errorf("%q stands as our words:\n%s", s, got)
	}
	checkComment(t, r, Page{Parts: []Part{{Report: r, Foreign: true}}}.Markdown())
}

// THREATS 25: names, paths and programs of the network are plain text.
func TestHostileNetwork(t *testing.T) {
	lanetest.SkipShort(t)
	for i, s := range append(slices.Clone(attacks), strings.Repeat("x", 300), strings.Join(attacks, " ")) {
		r := networkedRun()
		r.Records[0].Result.Observations.Network = oddReaches(s)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			checkComment(t, r, Markdown(r))
			checkComment(t, r, Page{Parts: []Part{{Report: r, Foreign: true}}}.Markdown())
		})
	}
}

// TestReadRefusesNetwork builds events that a gateway cannot have seen.
func TestReadRefusesNetwork(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*proposal.Observations)
		want string
	}{
		{"no kind", func(o *proposal.Observations) { o.Network[0].Kind = "exec" }, "network[0].kind"},
		{"never", func(o *proposal.Observations) { o.Network[0].Count = 0 }, "network[0].count"},
		{"a port", func(o *proposal.Observations) { o.Network[0].Port = 70000 }, "network[0].port"},
		{"negative bytes", func(o *proposal.Observations) { o.Network[0].Sent = -1 }, "network[0]"},
		{"refused and let through", func(o *proposal.Observations) { o.Network[0].Watched = true }, "network[0].watched"},
		{"a refusal hidden from the counts", func(o *proposal.Observations) { o.Counts.NetRefused = 7 }, "network"},
		{"more than there was", func(o *proposal.Observations) { o.Counts.NetRefused = 700 }, "counts"},
		{"fewer counted than listed", func(o *proposal.Observations) { o.Counts.Requests = 1 }, "network"},
		{"a negative count", func(o *proposal.Observations) { o.Counts.Datagrams = -1 }, "counts"},
		{"too many", func(o *proposal.Observations) { o.Network = slices.Repeat(o.Network, 21) }, "more than 200 items"},
		{"too many calls", func(o *proposal.Observations) { o.Network[7].Calls = slices.Repeat([]string{"GET /"}, 17) }, "more than 16 items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := networkedRun()
			tt.edit(r.Records[0].Result.Observations)
			checkRefused(t, string(document(t, r)), tt.want)
		})
	}
}

// How a program orders the addresses of a name is not shown: it sends nothing. Attempts are.
func TestAddressSortingIsNotShown(t *testing.T) {
	r := networkedRun()
	o := r.Records[0].Result.Observations
	call := func(kind, address, errno string) {
		o.Notable = append(o.Notable, proposal.Event{Command: "deps", Kind: kind, Program: "/usr/bin/curl", Address: address, Errno: errno, Times: 2})
		o.Counts.Connects += 2
	}
	hidden := []string{"198.18.1.7:443", "[fd66:756d:6568::107]:443", "[::ffff:198.18.1.7]:8443", "192.0.2.1:9", "[2001:db8::1]:9", "127.0.0.1:0", "none"}
	for i, address := range hidden {
		call(proposal.EventConnect, "udp "+address, []string{"", "ENETUNREACH"}[i%2])
	}
	call(proposal.EventConnect, "udp 198.18.0.1:53", "")
	shown := []string{"udp 192.0.2.53:53", "udp 192.0.2.1:443", "tcp 198.18.1.7:443", "tcp 192.0.2.1:9"}
	for _, address := range shown {
		call(proposal.EventConnect, address, "ENETUNREACH")
	}
	call(proposal.EventSend, "udp 198.18.1.9:9", "")
	got := Markdown(r)
	if !strings.Contains(got, "<li>connections and sockets: 10<") {
		t.Errorf("got\n%s", got)
	}
	for _, address := range append(shown, "udp 198.18.1.9:9") {
		if !strings.Contains(got, address) {
			t.Errorf("%s is not shown", address)
		}
	}
	for _, address := range append(hidden, "198.18.0.1:53") {
		if strings.Contains(got, "udp "+address) {
			t.Errorf("%s is shown", address)
		}
	}
	if data, err := JSON(r); err != nil || strings.Count(string(data), `"address": "udp `) != len(hidden)+4 {
		t.Errorf("the document lacks a call: %v", err)
	}
}
