// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A hostTrip is the allowed traffic between one program and one destination.
type hostTrip struct {
	place, program        string
	lookups               int
	connections, requests int
	sent, received        int64
	calls, codes          []string
}

// tripsOf joins connections with the requests in them, in order. A lookup is listed
// only if nothing followed it.
func tripsOf(list []proposal.Reach) []hostTrip {
	var trips []hostTrip
	at := map[[2]string]int{}
	visited := map[string]bool{}
	for _, r := range list {
		if r.Kind != proposal.EventLookup {
			visited[r.Name] = true
		}
	}
	for _, r := range list {
		if r.Kind == proposal.EventLookup && visited[r.Name] && r.Code == "" {
			continue
		}
		key := [2]string{r.Destination(), r.Program}
		n, known := at[key]
		if !known {
			n, at[key] = len(trips), len(trips)
			trips = append(trips, hostTrip{place: key[0], program: r.Program})
		}
		trips[n].addReach(r)
	}
	return trips
}

func (v *hostTrip) addReach(r proposal.Reach) {
	switch r.Kind {
	case proposal.EventLookup:
		v.lookups += r.Count
	case proposal.EventRequest:
		v.requests += r.Count
		v.calls = distinctStrings(append(v.calls, r.Calls...))
	default:
		v.connections += r.Count
	}
	if r.Kind == proposal.EventConnection { // whose bytes include its requests'
		v.sent, v.received = v.sent+r.Sent, v.received+r.Received
	}
	if r.Code != "" && !slices.Contains(v.codes, r.Code) {
		v.codes = append(v.codes, r.Code)
	}
}

func (v hostTrip) showTrip(l detailLevel) string {
	s := formatCode(v.place, l.short+60)
	if v.program != "" {
		s += " by " + formatCode(baseName(v.program), l.short)
	}
	var parts []string
	for _, n := range []struct {
		words string
		n     int
	}{{"looked up", v.lookups}, {"connections", v.connections}, {"requests", v.requests}} {
		if n.n > 0 {
			parts = append(parts, n.words+": "+text.FormatCount(int64(n.n)))
		}
	}
	s += ": " + strings.Join(parts, ", ")
	if len(v.calls) > 0 {
		s += " (" + showFew(v.calls, l) + ")"
	}
	if v.sent+v.received > 0 {
		s += fmt.Sprintf("; %s out, %s in", text.Size(v.sent), text.Size(v.received))
	}
	if len(v.codes) > 0 {
		s += "; ended: " + showSeveral(v.codes, func(s string) string { return formatCode(s, 40) })
	}
	return s
}
