// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"net/netip"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on what is kept to find the process that made a connection.
const (
	mostPlaces  = 4096 // addresses that programs connected to
	mostCallers = 32   // per address, the latest
	mostParked  = 128
)

// How close in time the call and the gateway's event are. Both use the same clock, but
// a call is reported when it returns.
const (
	callNear  = 50 * time.Millisecond
	callApart = 2 * time.Second
)

// anyResolver is the place of all calls to a port 53: a lookup need not say at which
// address it arrived.
const anyResolver = ":53"

// A joiner determines which process caused each event of the gateway, from the
// kernel's record of calls to the same address and port at that time.
//
// The two arrive independently, so the gateway's event may come first: it then waits
// for the other, for at most half a second. If several programs are possible, none is
// named: a guess would appear in the log as a fact.
type joiner struct {
	calls  map[string][]caller
	parked []proposal.Event
	aged   int // how many of parked were there at the last tick
}

type caller struct {
	at          time.Time
	pid, parent int
	program     string
}

// joined takes a trimmed event of the gateway, and returns the events that are ready.
func (j *joiner) joined(e proposal.Event) []proposal.Event {
	if e.Program != "" || e.Pid != 0 {
		return []proposal.Event{e}
	}
	if near := j.name(&e); near {
		return []proposal.Event{e}
	}
	e.Pid, e.Parent, e.Program = 0, 0, "" // a closer call may follow
	j.parked = append(j.parked, e)
	if len(j.parked) > mostParked {
		return j.release(1)
	}
	return nil
}

// called records an event of the kernel, if it is a call to a place, and returns the
// events that waited for it.
func (j *joiner) called(e proposal.Event) []proposal.Event {
	place := placeOf(e)
	if place == "" {
		return nil
	}
	j.keep(place, e)
	if strings.HasSuffix(place, anyResolver) {
		j.keep(anyResolver, e)
	}
	var ready, waiting []proposal.Event
	aged := 0
	for i, f := range j.parked {
		if j.name(&f) {
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

func (j *joiner) keep(place string, e proposal.Event) {
	if j.calls == nil {
		j.calls = map[string][]caller{}
	}
	list, known := j.calls[place]
	if !known && len(j.calls) >= mostPlaces {
		return
	}
	if len(list) == mostCallers {
		list = append(list[:0], list[1:]...)
	}
	j.calls[place] = append(list, caller{e.Time, e.Pid, e.Parent, e.Program})
}

// tick returns the events that have waited since before the last tick.
func (j *joiner) tick() []proposal.Event {
	ready := j.release(j.aged)
	j.aged = len(j.parked)
	return ready
}

// release returns the first n waiting events, with their processes if known by now.
func (j *joiner) release(n int) []proposal.Event {
	ready := j.parked[:n:n]
	j.parked, j.aged = j.parked[n:], max(0, j.aged-n)
	for i := range ready {
		j.name(&ready[i])
	}
	return ready
}

// name sets the process of e if it is known, and reports whether a call is so close
// that no closer one can follow.
func (j *joiner) name(e *proposal.Event) bool {
	list := j.calls[placeOf(*e)]
	if len(list) == 0 {
		return false
	}
	at := e.Time.Add(-time.Duration(e.Flow.WallMS) * time.Millisecond)
	best := list[0]
	for _, c := range list[1:] {
		if c.away(at) <= best.away(at) {
			best = c
		}
	}
	e.Pid, e.Parent, e.Program = best.pid, best.parent, best.program
	for _, c := range list {
		if c.pid == best.pid || best.away(at) <= callApart && c.away(at) > best.away(at)+callNear {
			continue
		}
		e.Pid, e.Parent = 0, 0
		if c.program != best.program {
			e.Program = ""
		}
	}
	return best.away(at) <= callNear
}

func (c caller) away(at time.Time) time.Duration { return c.at.Sub(at).Abs() }

// placeOf returns the address and port inside the sandbox that an event concerns:
// "198.18.0.5:443".
func placeOf(e proposal.Event) string {
	switch e.Kind {
	case proposal.EventConnect, proposal.EventSend:
		_, where, _ := strings.Cut(e.Address, " ")
		return place(where)
	}
	if e.Flow == nil {
		return ""
	}
	if p := place(e.Flow.Inside); p != "" {
		return p
	}
	if e.Kind == proposal.EventLookup {
		return anyResolver
	}
	if a, err := netip.ParseAddr(e.Flow.Egress.Address); err == nil && e.Flow.Egress.Name == "" {
		return place(netip.AddrPortFrom(a, uint16(e.Flow.Egress.Port)).String())
	}
	return ""
}

func place(text string) string {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
}
