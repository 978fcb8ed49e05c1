// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func by(e proposal.Event, program string) proposal.Event {
	e.Program = program
	return e
}

func request(name, method, path string, sent, received int64) proposal.Event {
	e := by(flow(0, proposal.EventRequest, name, "198.18.0.5:443"), "/usr/bin/pip")
	e.Flow.Egress.Method, e.Flow.Egress.Path, e.Flow.Egress.Protocol = method, path, "https"
	e.Flow.Sent, e.Flow.Received, e.Flow.Status = sent, received, 200
	return e
}

// Flows that are alike are one Reach, with counts, refusals first.
func TestReaches(t *testing.T) {
	watched := by(flow(0, proposal.EventLookup, "odd.example", ""), "/usr/bin/pip")
	watched.Flow.Egress.Port = 0
	watched.Flow.Decision.Observed = true
	watched.Flow.Decision.Reason = &proposal.Reason{Rule: "acme.odd", Message: "odd", Observed: true}
	mismatch := by(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), "/usr/bin/openssl")
	mismatch.Flow.Egress.SNI, mismatch.Flow.Egress.Address, mismatch.Flow.Code = "evil.example", "203.0.113.9", "mismatch"
	unreachable := by(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), "/usr/bin/pip")
	unreachable.Flow.Code = "unreachable"
	other := by(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), "/usr/bin/pip")
	other.Flow.Egress.Address = "203.0.113.10"
	evil := by(against(flow(0, proposal.EventLookup, "evil.example", ""), "egress.no-rule"), "/usr/bin/curl")
	evil.Flow.Egress.Port = 0
	raw := against(flow(0, proposal.EventConnection, "", ""), "egress.address")
	raw.Flow.Egress.Address = "192.0.2.7"
	raw2 := against(flow(0, proposal.EventConnection, "", ""), "egress.address")
	raw2.Flow.Egress.Address = "192.0.2.8"
	got := tallied(
		request("go.example", "GET", "/simple/a/", 10, 100), request("go.example", "GET", "/simple/a/", 10, 100), request("go.example", "GET", "/simple/b/", 1, 2),
		watched, other, other, unreachable, evil, evil, evil, raw, raw2, mismatch)
	want := []proposal.Reach{
		{Kind: "lookup", Name: "evil.example", Protocol: "tcp", Program: "/usr/bin/curl", Refused: true, Code: "policy", Rule: "egress.no-rule", Message: "no", Suggestion: "ask", Count: 3},
		{Kind: "connection", Address: "192.0.2.7", Port: 443, Protocol: "tcp", Refused: true, Code: "policy", Rule: "egress.address", Message: "no", Suggestion: "ask", Count: 1},
		{Kind: "connection", Address: "192.0.2.8", Port: 443, Protocol: "tcp", Refused: true, Code: "policy", Rule: "egress.address", Message: "no", Suggestion: "ask", Count: 1},
		{Kind: "connection", Name: "go.example", Address: "203.0.113.9", Port: 443, Protocol: "tcp", SNI: "evil.example", Program: "/usr/bin/openssl", Refused: true, Code: "mismatch", Count: 1},
		{Kind: "lookup", Name: "odd.example", Protocol: "tcp", Program: "/usr/bin/pip", Watched: true, Rule: "acme.odd", Message: "odd", Count: 1},
		{Kind: "request", Name: "go.example", Port: 443, Protocol: "https", Program: "/usr/bin/pip", Count: 3, Sent: 21, Received: 202, Calls: []string{"GET /simple/a/", "GET /simple/b/"}},
		{Kind: "connection", Name: "go.example", Address: "203.0.113.10", Port: 443, Protocol: "tcp", Program: "/usr/bin/pip", Count: 2},
		{Kind: "connection", Name: "go.example", Port: 443, Protocol: "tcp", Program: "/usr/bin/pip", Code: "unreachable", Count: 1},
	}
	if diff := cmp.Diff(want, got.Network); diff != "" {
		t.Errorf("reaches (-want +got):\n%s", diff)
	}
	counts := proposal.Counts{Lookups: 4, Connections: 6, Requests: 3, NetRefused: 6, NetWatched: 1}
	if diff := cmp.Diff(counts, got.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// What was let through because nothing was enforced is not what policy allowed.
func TestObservedReaches(t *testing.T) {
	free := by(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), "/usr/bin/pip")
	free.Flow.Verdict = proposal.VerdictObserved
	against := by(flow(0, proposal.EventConnection, "evil.example", "198.18.0.6:443"), "/usr/bin/pip")
	against.Flow.Verdict, against.Flow.Decision.Observed = proposal.VerdictObserved, true
	against.Flow.Decision.Reason = &proposal.Reason{Rule: "egress.host", Message: "no"}
	private := by(flow(0, proposal.EventConnection, "evil.example", "198.18.0.6:443"), "/usr/bin/pip")
	private.Flow.Code = "address"
	got := tallied(free, free, against, private, by(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), "/usr/bin/pip"))
	want := []string{"evil.example refused  1", "evil.example observed egress.host 1", "go.example observed  2", "go.example allowed  1"}
	var list []string
	for _, r := range got.Network {
		list = append(list, fmt.Sprintf("%s %s %s %d", r.Name, r.Verdict(), r.Rule, r.Count))
	}
	if diff := cmp.Diff(want, list); diff != "" || got.Counts.NetRefused != 1 || got.Counts.NetWatched != 1 {
		t.Errorf("%+v\n%s", got.Counts, diff)
	}
}

// A call whose outcome the gateway reported is not listed twice, but is judged all the same;
// one to another place, to a socket, or of a listener, stays.
func TestListedOnce(t *testing.T) {
	raw := against(flow(0, proposal.EventConnection, "", ""), "egress.address")
	raw.Flow.Egress.Address = "192.0.2.7"
	listening := dialled(0, 7, "/x", "tcp 198.18.0.5:443")
	listening.Kind = proposal.EventListen
	judged := 0
	o, _ := watching(t, func(context.Context, proposal.Event) ([]proposal.Finding, error) { judged++; return nil, nil }, whole(),
		dialled(0, 7, "/x", "tcp 198.18.0.5:443"), dialled(0, 7, "/x", "tcp 198.18.0.5:443"), dialled(0, 7, "/x", "tcp 192.0.2.7:443"), dialled(0, 7, "/x", "udp 198.18.0.1:53"),
		dialled(0, 7, "/x", "tcp 192.0.2.7:444"), dialled(0, 7, "/x", "unix /run/x"), listening,
		flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"), flow(0, proposal.EventLookup, "go.example", ""), raw)
	var got []string
	for _, e := range o.Notable {
		got = append(got, e.Kind+" "+e.Address)
	}
	if diff := cmp.Diff([]string{"connect tcp 192.0.2.7:444", "connect unix /run/x", "listen tcp 198.18.0.5:443"}, got); diff != "" || o.Counts.Connects != 3 {
		t.Errorf("%d connects; notable (-want +got):\n%s", o.Counts.Connects, diff)
	}
	if judged != 7 {
		t.Errorf("%d judged, want six calls and a refusal", judged)
	}
}

// A flood of names is only counted: it crowds out neither the refusals nor the log.
func TestManyFlows(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	k := &keeper{}
	observer := newObserver(t, k, noFindings)
	o := during(t, observer, k, whole(), func() {
		for i := range maxFlows + 500 {
			observer.AddEvent(by(flow(0, proposal.EventLookup, fmt.Sprintf("n%d.example", i), ""), "/x"))
		}
		for range maxFlows + 300 {
			observer.AddEvent(by(against(flow(0, proposal.EventConnection, "evil.example", ""), "egress.no-rule"), "/x"))
		}
	})
	if diff := cmp.Diff(proposal.Counts{Lookups: maxFlows + 500, Connections: maxFlows + 300, NetRefused: maxFlows + 300}, o.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(o.Network) != maxPerClass+1 || !o.Network[0].Refused || o.Network[0].Count != maxFlows {
		t.Errorf("%d reaches, the first %+v", len(o.Network), o.Network[0])
	}
	if events, counted := len(k.events()), k.counted(); events != 2*maxFlows || counted != 800 {
		t.Errorf("%d events in the log and %d counted", events, counted)
	}
}

// The judge is asked once about each thing that was refused, or would have been.
func TestNetworkFindings(t *testing.T) {
	evil := by(against(flow(0, proposal.EventConnection, "evil.example", ""), "egress.no-rule"), "/x")
	var asked []string
	watching(t, func(_ context.Context, e proposal.Event) ([]proposal.Finding, error) {
		asked = append(asked, e.Kind+" "+e.Flow.Egress.Name)
		return nil, nil
	}, whole(), evil, evil, by(flow(0, proposal.EventLookup, "go.example", ""), "/x"))
	if diff := cmp.Diff([]string{"connection evil.example"}, asked); diff != "" {
		t.Error(diff)
	}
}

// What an untrusted server or program can make long is cut before it reaches the log.
func TestHugeFlow(t *testing.T) {
	long := strings.Repeat("\xff\u202e", 1<<20)
	f := &proposal.Flow{Code: long, Inside: long, Sent: 1 << 62, Received: -1, WallMS: -1, Status: -1,
		Egress: proposal.Egress{Command: long, Phase: long, Kind: long, Name: long, Type: long, Address: long, Port: -1, Protocol: long, SNI: long, Method: long, Path: long, Query: -1, Size: 1 << 62,
			Secrets: slices.Repeat([]proposal.EgressSecret{{Rule: long, Where: long}}, 1000), Grants: []string{long}, Registries: slices.Repeat([]string{long}, 1000)},
		Decision: proposal.EgressDecision{Rules: slices.Repeat([]string{long}, 1000), Reason: &proposal.Reason{Rule: long, Message: long, Suggestion: long, Text: long}}}
	e := trimEvent(proposal.Event{Command: "a", Kind: proposal.EventRequest, Time: morning, Flow: f})
	data, err := json.Marshal(e)
	if err != nil || len(data) > 64<<10 {
		t.Errorf("an event of %d bytes, %v", len(data), err)
	}
	if eventSize(e) < len(e.Flow.Egress.Path)+len(e.Flow.Decision.Reason.Message) {
		t.Errorf("it weighs %d", eventSize(e))
	}
	o := tallied(e, e, e)
	if r := o.Network[0]; r.Sent != maxBytes || r.Received != 0 || r.Port != 0 || len(r.Calls) != 1 || len(r.Calls[0]) > maxCall {
		t.Errorf("sent %d, received %d, port %d, %d calls", r.Sent, r.Received, r.Port, len(r.Calls))
	}
	if e := trimEvent(proposal.Event{Kind: proposal.EventWrite, Flow: f}); e.Flow != nil {
		t.Error("a write has a flow")
	}
	if n := len(tallied(proposal.Event{Kind: proposal.EventLookup, Time: time.Time{}}).Network); n != 0 {
		t.Error("a lookup of nothing is told")
	}
}
