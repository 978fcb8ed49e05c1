// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// observedRun is a past run whose network was only observed.
func observedRun(reaches ...proposal.Reach) replay.Past {
	past := ran("go test ./...")
	past.Runs[0].NetworkObserved = true
	past.Runs[0].Acts[0].Reaches = reaches
	return past
}

func reachTo(name string, port int, change func(*proposal.Reach)) proposal.Reach {
	r := proposal.Reach{Kind: proposal.EventConnection, Name: name, Address: "192.0.2.1", Port: port, Protocol: "tcp", Program: "/usr/bin/curl",
		Observed: true, Watched: true, Rule: "egress.host", Count: 1, Sent: 5, Received: 7}
	if change != nil {
		change(&r)
	}
	return r
}

// The hosts that were tried, refused ones too, are comments: none is granted, none is a
// wildcard, and one from which the comment is removed is granted.
func TestSuggestTried(t *testing.T) {
	refused := func(r *proposal.Reach) {
		r.Refused, r.Observed, r.Watched, r.Code, r.Rule = true, false, false, "address", ""
	}
	past := observedRun(
		reachTo("pypi.example", 443, nil), reachTo("pypi.example", 80, nil), reachTo("git.example", 22, nil),
		reachTo("intranet.example", 443, refused), reachTo("", 8080, func(r *proposal.Reach) { r.Address = "2001:db8::1" }),
		reachTo("gone.example", 0, func(r *proposal.Reach) { r.Kind, r.Address = proposal.EventLookup, "" }),
		reachTo("*.example", 443, nil), reachTo("a\"\n}\nallow := true", 443, nil), reachTo("caf\u00e9.example", 443, nil),
		reachTo("quic.example", 443, func(r *proposal.Reach) {
			r.Kind, r.Refused, r.Observed, r.Watched = proposal.EventDatagram, true, false, false
		}))
	plain := engineOf(t)
	s, with := suggested(t, plain, past, replay.Wanted{})
	var got []string
	for _, h := range s.Tried {
		got = append(got, fmt.Sprintf("%s %s %s %d %d %s", h.Host, h.Verdict, h.Rule, h.Sent, h.Received, h.Commands))
	}
	want := []string{
		"[2001:db8::1]:8080 observed egress.host 5 7 [go test ./...]", "git.example:22 observed egress.host 5 7 [go test ./...]",
		"gone.example observed egress.host 0 0 [go test ./...]", "intranet.example refused  5 7 [go test ./...]", "pypi.example observed egress.host 10 14 [go test ./...]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(s.Left) != 1 || s.Left[0].Why != "it tried a host whose name no rule can have" {
		t.Errorf("left %+v", s.Left)
	}
	file := string(s.Files()["proposal/tried.rego"])
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, "#") && line != "\n" && line != "package fumehood.proposal\n" {
			t.Errorf("has an effect: %s", line)
		}
	}
	wanted := proposal.Proposal{ID: "t", Run: "go test ./...", Network: []string{"pypi.example"}}
	if d, err := with.Decide(t.Context(), wanted, parse.Analyze(wanted)); err != nil || d.Effect != proposal.Deny {
		t.Errorf("granted by a comment: %v, %v", d.Effect, err)
	}
	rule := "network contains {\"rule\": \"tried.host-5\", \"host\": \"pypi.example\"} if input.proposal.phase == \"run\"\n"
	active := strings.Replace(file, "# "+rule, rule, 1)
	judged := engineOf(t, layer(policy.Allows, active), layerOf(s, policy.Allows))
	if d, err := judged.Decide(t.Context(), wanted, parse.Analyze(wanted)); active == file || err != nil || d.Effect != proposal.Allow {
		t.Errorf("not granted without the comment: %v, %v\n%s", d.Effect, err, active)
	}
}

// The hosts are shown even if no rule can be made.
func TestSuggestTriedOnly(t *testing.T) {
	past := observedRun(reachTo("pypi.example", 443, nil))
	past.Runs[0].Verified = false // as of a report
	s, err := replay.Suggest(t.Context(), past, replay.Engine{Engine: engineOf(t)}, replay.Wanted{})
	if err != nil || s.CheckAny() != nil || len(s.Rules) != 0 || len(s.Tried) != 1 || len(s.Files()) != 1 {
		t.Errorf("%v, %v, %+v", err, s.CheckAny(), s)
	}
	if !strings.Contains(s.CountMade(), "1 tried host to judge") || s.HasRules() || s.Next("x") != "judge each host in proposal/tried.rego" {
		t.Error(s.CountMade(), s.Next("x"))
	}
	data, err := s.JSON()
	var document struct{ Tried []replay.TriedHost }
	if err != nil || json.Unmarshal(data, &document) != nil || len(document.Tried) != 1 {
		t.Errorf("%v: %s", err, data)
	}
}
