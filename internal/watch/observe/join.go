// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/netip"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of what is kept to find the process of a Flow.
const (
	maxPlaces  = 4096 // that programs called
	maxCallers = 32   // of one place, the latest
	maxParked  = 128
)

// How near in time a call and the gateway's event of it are. Both come from one clock, but
// a call is reported when it returns.
const (
	callNear  = 50 * time.Millisecond
	callApart = 2 * time.Second
)

// anyResolver is the place of all calls to a port 53: a lookup need not say at which
// address it came in.
const anyResolver = ":53"

// A joiner finds the process of each event of the gateway, from the kernel's record of
// which process called the same address and port at that time.
//
// The two arrive separately, so the gateway's event may be first: it then waits for the
// kernel's, for half a second at most. Where several programs are possible none is named,
// because a guess would appear in the log as a fact.
type joiner struct {
	calls  map[string][]caller
	parked []proposal.Event
	aged   int // of parked, those that were there at the last tick
}

type caller struct {
	at          time.Time
	pid, parent int
	program     string
}

// joinGatewayEvent takes an event of the gateway that was trimmed, and returns those that are ready.
func (j *joiner) joinGatewayEvent(e proposal.Event) []proposal.Event {
	if e.Program != "" || e.Pid != 0 {
		return []proposal.Event{e}
	}
	if near := j.setProcess(&e); near {
		return []proposal.Event{e}
	}
	e.Pid, e.Parent, e.Program = 0, 0, "" // a nearer call may still be reported
	j.parked = append(j.parked, e)
	if len(j.parked) > maxParked {
		return j.releaseEvents(1)
	}
	return nil
}

// addCall keeps an event of the kernel, if it is a call to a place, and returns the events
// that waited for it.
func (j *joiner) addCall(e proposal.Event) []proposal.Event {
	place := placeOf(e)
	if place == "" {
		return nil
	}
	j.keepCall(place, e)
	if strings.HasSuffix(place, anyResolver) {
		j.keepCall(anyResolver, e)
	}
	var ready, waiting []proposal.Event
	aged := 0
	for i, f := range j.parked {
		if j.setProcess(&f) {
			ready = append(ready, f)
			continue
		}
		f.Pid, f.Parent, f.Program = 0, 0, ""
		waiting = append(waiting, f)
		if i < j.aged {
			aged++
		}
	}
	j.parked, j.aged = waiting, aged
	return ready
}

func (j *joiner) keepCall(place string, e proposal.Event) {
	if j.calls == nil {
		j.calls = map[string][]caller{}
	}
	list, known := j.calls[place]
	if !known && len(j.calls) >= maxPlaces {
		return
	}
	if len(list) == maxCallers {
		list = append(list[:0], list[1:]...)
	}
	j.calls[place] = append(list, caller{e.Time, e.Pid, e.Parent, e.Program})
}

// releaseExpired returns the events that have waited since the tick before the last.
func (j *joiner) releaseExpired() []proposal.Event {
	ready := j.releaseEvents(j.aged)
	j.aged = len(j.parked)
	return ready
}

// releaseEvents returns the first n events that wait, with the processes that are known by now.
func (j *joiner) releaseEvents(n int) []proposal.Event {
	ready := j.parked[:n:n]
	j.parked, j.aged = j.parked[n:], max(0, j.aged-n)
	for i := range ready {
		j.setProcess(&ready[i])
	}
	return ready
}

// setProcess sets the process of e where it is known, and reports whether its call was so near
// that no nearer one can follow.
func (j *joiner) setProcess(e *proposal.Event) bool {
	list := j.calls[placeOf(*e)]
	if len(list) == 0 {
		return false
	}
	at := e.Time.Add(-time.Duration(e.Flow.WallMS) * time.Millisecond)
	best := list[0]
	for _, c := range list[1:] {
		if c.timeDistance(at) <= best.timeDistance(at) {
			best = c
		}
	}
	e.Pid, e.Parent, e.Program = best.pid, best.parent, best.program
	for _, c := range list {
		if c.pid == best.pid || best.timeDistance(at) <= callApart && c.timeDistance(at) > best.timeDistance(at)+
			callNear {
			continue
		}
		e.Pid, e.Parent = 0, 0
		if c.program != best.program {
			e.Program = ""
		}
	}
	return best.timeDistance(at) <= callNear
}

func (c caller) timeDistance(at time.Time) time.Duration { return c.at.Sub(at).Abs() }

// placeOf returns the address and port inside the sandbox that an event is about:
// "198.18.0.5:443".
func placeOf(e proposal.Event) string {
	switch e.Kind {
	case proposal.EventConnect, proposal.EventSend:
		_, where, _ := strings.Cut(e.Address, " ")
		return normalizeAddrPort(where)
	}
	if e.Flow == nil {
		return ""
	}
	if p := normalizeAddrPort(e.Flow.Inside); p != "" {
		return p
	}
	if e.Kind == proposal.EventLookup {
		return anyResolver
	}
	if a, err := netip.ParseAddr(e.Flow.Egress.Address); err == nil && e.Flow.Egress.Name == "" {
		return normalizeAddrPort(netip.AddrPortFrom(a, uint16(e.Flow.Egress.Port)).String())
	}
	return ""
}

func normalizeAddrPort(text string) string {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
}
