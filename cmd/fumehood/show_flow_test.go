// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// flowOf is the gateway's event for a program that connected to an address in the
// sandbox.
func flowOf(kind, inside string, g proposal.Egress) proposal.Event {
	return proposal.Event{Kind: kind, Flow: &proposal.Flow{Egress: g, Inside: inside, Decision: proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.granted"}}}}
}

func barredBy(e proposal.Event, code, rule string) proposal.Event {
	e.Flow.Code, e.Flow.Decision = code, proposal.EgressDecision{Rules: []string{rule}, Reason: &proposal.Reason{Rule: rule, Message: "no", Command: -1}}
	return e
}

// talkative returns the events of a command that was granted one host and tries others.
func talkative() []proposal.Event {
	const curl, dns, there = "/usr/bin/curl", "198.18.0.1:53", "198.18.0.5:443"
	call := func(pid int, address string) proposal.Event {
		return proposal.Event{Kind: proposal.EventConnect, Pid: pid, Parent: 7, Program: curl, Address: address}
	}
	connection := flowOf(proposal.EventConnection, there, proposal.Egress{Name: "go.example", Address: "203.0.113.9", Port: 443, Protocol: "https"})
	connection.Flow.Sent, connection.Flow.Received, connection.Flow.WallMS = 517, 6012345, 3
	request := flowOf(proposal.EventRequest, there, proposal.Egress{Name: "go.example", Address: "203.0.113.9", Port: 443, Protocol: "https", Method: "GET", Path: "/a"})
	request.Flow.Status = 200
	observed := flowOf(proposal.EventLookup, dns, proposal.Egress{Name: "stats.example", Type: "A", Protocol: "udp"})
	observed.Flow.Decision.Observed, observed.Flow.Decision.Reason = true, &proposal.Reason{Rule: "acme.no-telemetry"}
	fronted := flowOf(proposal.EventConnection, there, proposal.Egress{Name: "go.example", Port: 443, Protocol: "tls", SNI: "evil.example"})
	raw := flowOf(proposal.EventDatagram, "", proposal.Egress{Address: "192.0.2.1", Port: 443, Protocol: "udp"})
	return []proposal.Event{
		execOf(proposal.EventExec, 7, 1, "/usr/bin/bash", "/bin/bash", "-c", "go test ./..."),
		call(8, "udp "+dns),
		barredBy(flowOf(proposal.EventLookup, dns, proposal.Egress{Name: "evil.example", Type: "A", Protocol: "udp"}), "policy", "egress.no-rule"),
		observed,
		call(8, "tcp "+there), request, connection,
		barredBy(fronted, "mismatch", "egress.mismatch"),
		barredBy(raw, "policy", "egress.datagram"),
	}
}

const flowsWant = `04:05:06.001    connect    unit     [8<7] curl udp 198.18.0.1:53
04:05:06.002    lookup     unit     [8<7] curl udp evil.example A: refused by egress.no-rule
04:05:06.003    lookup     unit     [8<7] curl udp stats.example A by acme.no-telemetry (observed only)
04:05:06.004    connect    unit     [8<7] curl tcp 198.18.0.5:443
04:05:06.005    request    unit     [8<7] curl GET https://go.example:443/a = 203.0.113.9 answered 200
04:05:06.006    connection unit     [8<7] curl https go.example:443 = 203.0.113.9, 517 bytes out, 6012345 in, 3ms
04:05:06.007    connection unit     [8<7] curl tls go.example:443 named evil.example: refused by egress.mismatch
04:05:06.008    datagram   unit     [?] udp 192.0.2.1:443: refused by egress.datagram
04:05:06.000  result       unit     exit code 0 in 2.345s; programs: 1 started, 0 refused; network: 2 lookups, 2 connections, 1 requests, 3 refused, 1 would have been refused
`

// The timeline shows each destination, the program, and the reason for a refusal.
func TestShowNetwork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := writeLog(path, talkative()...); err != nil {
		t.Fatal(err)
	}
	if got, code := showing(t, path); !strings.Contains(got, flowsWant) || code != exitOK {
		t.Errorf("exit %d, want 0; got\n%s\nwant\n%s", code, got, flowsWant)
	}
}

// Whatever a name or a path is, an event is one line and hides nothing.
func TestShowHostileNetwork(t *testing.T) {
	const text = "a\n04:05:06.000  end  all well\x1b[2J\u202e\u200b##[error]x\r::warning::y\U000e0041 \u2028"
	g := proposal.Egress{Name: text, Type: text, Address: text, Port: 443, Protocol: text, SNI: text + "x", Method: text, Path: text}
	var events []proposal.Event
	for _, kind := range []string{proposal.EventLookup, proposal.EventConnection, proposal.EventRequest, proposal.EventDatagram} {
		e := flowOf(kind, text, g)
		e.Program = text
		events = append(events, e, barredBy(flowOf(kind, text, g), text, text))
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := writeLog(path, events...); err != nil {
		t.Fatal(err)
	}
	got, code := showing(t, path, "--all")
	if code != exitOK || strings.Count(got, "\n") != 15 {
		t.Errorf("exit %d, %d lines:\n%q", code, strings.Count(got, "\n"), got)
	}
	checkShown(t, got)
	got, _ = showing(t, path, "--json")
	checkShown(t, got)
}
