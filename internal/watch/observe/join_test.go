// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// dialled returns the kernel's event for a call to an address.
func dialled(after time.Duration, pid int, program, address string) proposal.Event {
	return proposal.Event{Command: "a", Kind: proposal.EventConnect, Time: morning.Add(after), Pid: pid, Parent: 1, Program: program, Address: address}
}

// flow returns the gateway's event for the result of a call.
func flow(after time.Duration, kind, name, inside string) proposal.Event {
	f := &proposal.Flow{Egress: proposal.Egress{Command: "a", Kind: kind, Name: name, Port: 443, Protocol: "tcp"},
		Decision: proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.granted"}}, Inside: inside}
	return proposal.Event{Command: "a", Kind: kind, Time: morning.Add(after), Flow: f}
}

// against returns e refused by rule.
func against(e proposal.Event, rule string) proposal.Event {
	f := *e.Flow
	f.Code = "policy"
	f.Decision = proposal.EgressDecision{Effect: proposal.Deny, Rules: []string{rule}, Reason: &proposal.Reason{Rule: rule, Message: "no", Suggestion: "ask", Command: -1}}
	e.Flow = &f
	return e
}

func TestJoin(t *testing.T) {
	const ms, there, dns = time.Millisecond, "198.18.0.5:443", "udp 198.18.0.1:53"
	curl := dialled(0, 7, "/usr/bin/curl", "tcp "+there)
	lookup := flow(ms, proposal.EventLookup, "go.example", "")
	slow := flow(3*time.Second, proposal.EventConnection, "go.example", there)
	slow.Flow.WallMS = 2999
	raw := flow(ms, proposal.EventDatagram, "", "")
	raw.Flow.Egress.Address, raw.Flow.Egress.Port = "192.0.2.1", 123
	raw6 := raw
	raw6.Flow = &proposal.Flow{Egress: proposal.Egress{Address: "2001:db8::1", Port: 123}}
	for _, tt := range []struct {
		name   string
		events []proposal.Event
		want   string // program and pid of the last flow
	}{
		{"nobody", []proposal.Event{flow(0, proposal.EventConnection, "go.example", there)}, " 0"},
		{"who connected", []proposal.Event{curl, flow(ms, proposal.EventConnection, "go.example", there)}, "/usr/bin/curl 7"},
		{"who is told later", []proposal.Event{flow(ms, proposal.EventConnection, "go.example", there), curl}, "/usr/bin/curl 7"},
		{"a request", []proposal.Event{curl, flow(ms, proposal.EventRequest, "go.example", there)}, "/usr/bin/curl 7"},
		{"mapped into IPv6", []proposal.Event{dialled(0, 7, "/usr/bin/node", "tcp [::ffff:198.18.0.5]:443"), flow(ms, proposal.EventConnection, "go.example", there)}, "/usr/bin/node 7"},
		{"another address", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp 198.18.0.6:443"), flow(ms, proposal.EventConnection, "go.example", there)}, " 0"},
		{"another port", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp 198.18.0.5:80"), flow(ms, proposal.EventConnection, "go.example", there)}, " 0"},
		{"one after the other", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp "+there), dialled(400*ms, 8, "/usr/bin/wget", "tcp "+there), flow(401*ms, proposal.EventConnection, "go.example", there)}, "/usr/bin/wget 8"},
		{"the first, told last", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp "+there), dialled(400*ms, 8, "/usr/bin/wget", "tcp "+there), slow}, "/usr/bin/curl 7"},
		{"the later one, before its call is told", []proposal.Event{curl, flow(400*ms, proposal.EventConnection, "go.example", there), dialled(401*ms, 8, "/usr/bin/wget", "tcp "+there)}, "/usr/bin/wget 8"},
		{"two at the same time", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp "+there), dialled(20*ms, 8, "/usr/bin/wget", "tcp "+there), flow(ms, proposal.EventConnection, "go.example", there)}, " 0"},
		{"one program twice at the same time", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp "+there), dialled(ms, 8, "/usr/bin/curl", "tcp "+there), flow(ms, proposal.EventConnection, "go.example", there)}, "/usr/bin/curl 0"},
		{"long after two", []proposal.Event{dialled(0, 7, "/usr/bin/curl", "tcp "+there), dialled(ms, 8, "/usr/bin/wget", "tcp "+there), flow(time.Minute, proposal.EventConnection, "go.example", there)}, " 0"},
		{"long after one", []proposal.Event{curl, flow(time.Minute, proposal.EventConnection, "go.example", there)}, "/usr/bin/curl 7"},
		{"a lookup", []proposal.Event{dialled(0, 7, "/usr/bin/curl", dns), lookup}, "/usr/bin/curl 7"},
		{"a lookup and who connects later", []proposal.Event{curl, lookup}, " 0"},
		{"a raw address", []proposal.Event{dialled(0, 9, "/usr/bin/ntpd", "udp 192.0.2.1:123"), raw}, "/usr/bin/ntpd 9"},
		{"a raw IPv6 address", []proposal.Event{dialled(0, 9, "/usr/bin/ntpd", "udp [2001:db8::1]:123"), raw6}, "/usr/bin/ntpd 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, k := watching(t, noFindings, whole(), tt.events...)
			got := ""
			for _, e := range k.events() {
				if e.Flow != nil {
					got = fmt.Sprintf("%s %d", e.Program, e.Pid)
				}
			}
			if logged := len(k.events()); got != tt.want || logged != len(tt.events) {
				t.Errorf("by %q, want %q; %d events in the log, want %d", got, tt.want, logged, len(tt.events))
			}
		})
	}
}

// A Flow whose process is not found does not wait for the end of the command.
func TestParkedFlowIsWritten(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	k := &keeper{}
	o := newObserver(t, k, noFindings)
	during(t, o, k, whole(), func() {
		o.AddEvent(flow(0, proposal.EventConnection, "go.example", "198.18.0.5:443"))
		deadline := time.Now().Add(5 * time.Second)
		for k.empty() && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if k.empty() {
			t.Error("a connection waits for the end of the command")
		}
	})
}

// What is kept to find the process of a Flow is bounded, whatever a command does.
func TestJoinerIsBounded(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	var j joiner
	const n = maxPlaces + 2*maxParked
	ready := 0
	for i := range n {
		address := fmt.Sprintf("tcp 10.%d.%d.1:80", i>>8&255, i&255)
		j.addCall(dialled(0, i, "/x", address))
		j.addCall(dialled(0, i, "/x", "tcp 192.0.2.1:1"))
		ready += len(j.joinGatewayEvent(flow(0, proposal.EventConnection, "n", "198.18.0.5:443")))
	}
	if len(j.calls) > maxPlaces || len(j.calls["192.0.2.1:1"]) != maxCallers || len(j.parked) != maxParked || ready+maxParked != n {
		t.Errorf("%d places, %d callers, %d parked, %d ready", len(j.calls), len(j.calls["192.0.2.1:1"]), len(j.parked), ready)
	}
}

// Events of the kernel and the gateway come from different goroutines: each event is
// in the log once, and the report matches the log.
func TestSeeFromTwoSides(t *testing.T) {
	lanetest.SkipShort(t)
	const n = 3000
	k := &keeper{slow: time.Millisecond}
	o := newObserver(t, k, noFindings)
	seen := during(t, o, k, whole(), func() {
		var both sync.WaitGroup
		both.Go(func() {
			for i := range n {
				o.AddEvent(dialled(time.Duration(i), 7, "/usr/bin/curl", fmt.Sprintf("tcp 198.18.0.%d:443", i%200)))
			}
		})
		both.Go(func() {
			for i := range n {
				o.AddEvent(flow(time.Duration(i), proposal.EventConnection, fmt.Sprintf("h%d.example", i%200), fmt.Sprintf("198.18.0.%d:443", i%200)))
			}
		})
		both.Wait()
	})
	if diff := cmp.Diff(proposal.Counts{Connections: n}, countsOf(seen.Counts)); diff != "" || !seen.Complete {
		t.Errorf("complete %v, counts (-want +got):\n%s", seen.Complete, diff)
	}
}

// countsOf removes the number of calls without a name: it depends on order.
func countsOf(c proposal.Counts) proposal.Counts {
	c.Connects = 0
	return c
}
