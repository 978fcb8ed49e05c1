// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/netip"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of what is kept to find out who it was.
const (
	mostPlaces  = 4096 // that programs spoke to
	mostCallers = 32   // of one place, the latest
	mostParked  = 128
)

// How near in time the call and what the gateway saw are. The two clocks are the same
// one, but a call is told when it returns.
const (
	callNear  = 50 * time.Millisecond
	callApart = 2 * time.Second
)

// anyResolver is the place of all who spoke to a port 53: a lookup need not say where
// it came in.
const anyResolver = ":53"

// A joiner says of each event of the gateway which process it was, by the kernel's
// record of who spoke to the same address and port at that time.
//
// The two come by ways of their own, so the gateway's may be here first: it then waits
// for the other, for half a second at most. Where several programs come into question,
// nobody is named: a guess would stand in the log as a fact.
type joiner struct {
	calls  map[string][]caller
	parked []proposal.Event
	aged   int // of parked, those that stood there at the last tick
}

type caller struct {
	at          time.Time
	pid, parent int
	program     string
}

// joined takes an event of the gateway that trimmed has seen, and returns those that
// are ready.
func (j *joiner) joined(e proposal.Event) []proposal.Event {
	if e.Program != "" || e.Pid != 0 {
		return []proposal.Event{e}
	}
	if near := j.name(&e); near {
		return []proposal.Event{e}
	}
	e.Pid, e.Parent, e.Program = 0, 0, "" // somebody may come who was nearer
	j.parked = append(j.parked, e)
	if len(j.parked) > mostParked {
		return j.release(1)
	}
	return nil
}

// called keeps an event of the kernel, if it is a call to a place, and returns what has
// waited for it.
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

// tick returns what has waited since the tick before the last.
func (j *joiner) tick() []proposal.Event {
	ready := j.release(j.aged)
	j.aged = len(j.parked)
	return ready
}

// release returns the first n that wait, with whoever can be named by now.
func (j *joiner) release(n int) []proposal.Event {
	ready := j.parked[:n:n]
	j.parked, j.aged = j.parked[n:], max(0, j.aged-n)
	for i := range ready {
		j.name(&ready[i])
	}
	return ready
}

// name names the process of e where it is known, and reports whether one called so
// near to it that nobody nearer can follow.
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

// placeOf is the address and port inside that an event speaks of: "198.18.0.5:443".
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
