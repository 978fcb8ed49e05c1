// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reaches are what r's command did with the network, of which want holds.
func reaches(r proposal.Record, want func(proposal.Reach) bool) []proposal.Reach {
	o := seen(r)
	if o == nil {
		return nil
	}
	var list []proposal.Reach
	for _, reach := range o.Network {
		if want(reach) {
			list = append(list, reach)
		}
	}
	return list
}

func isRefused(r proposal.Reach) bool { return r.Refused }
func isWatched(r proposal.Reach) bool { return r.Watched && !r.Refused }
func isPassed(r proposal.Reach) bool  { return !r.Refused }

// refusedFlows counts what of the network was refused to r's command.
func refusedFlows(r proposal.Record) int {
	if o := seen(r); o != nil {
		return o.Counts.NetRefused
	}
	return 0
}

// destinations are the places that reaches speak of, each once.
func destinations(list []proposal.Reach) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.Destination())
	}
	return distinct(names)
}

// barred says that commands tried to reach what they were refused, which their own
// success may hide.
func (p Page) barred(l level) string {
	var who, where []string
	n, passed := 0, 0
	for _, r := range p.records() {
		if refusedFlows(r) == 0 {
			continue
		}
		n += refusedFlows(r)
		who = append(who, r.Proposal.ID)
		where = append(where, destinations(reaches(r, isRefused))...)
		if r.Result.Succeeded() {
			passed++
		}
	}
	if n == 0 {
		return ""
	}
	show := func(s string) string { return code(s, l.short) }
	s := fmt.Sprintf("⛔ <b>The network was refused</b> to %s that tried to reach %s; tried %s in all, by %s.", commands(len(who)), several(distinct(where), show), often(n), several(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s succeeded nevertheless</b>: what %s did without it stands below.", commands(passed), itThey(passed))
	}
	return s
}

// network says what a command did with the network, as items of a list: what was
// refused first.
func network(r proposal.Record, l level) []string {
	o := seen(r)
	if o == nil {
		return nil
	}
	var items []string
	for _, group := range []struct {
		words string
		n     int
		list  []proposal.Reach
	}{
		{"network, refused", o.Counts.NetRefused, reaches(r, isRefused)},
		{"network, would have been refused", o.Counts.NetWatched, reaches(r, isWatched)},
	} {
		if group.n > 0 {
			items = append(items, fmt.Sprintf("<li>%s: %s%s</li>", group.words, text.Count(int64(group.n)), list(group.list, l.list, func(r proposal.Reach) string { return barredLine(r, l) })))
		}
	}
	if trips := tripsOf(reaches(r, isPassed)); len(trips) > 0 {
		items = append(items, "<li>network, reached:"+list(trips, (l.list+1)/2, func(v trip) string { return v.line(l) })+"</li>")
	}
	return items
}

// barredLine is one thing that was refused: where to, by whom, and why.
func barredLine(r proposal.Reach, l level) string {
	how := map[string]string{proposal.EventLookup: "looked up", proposal.EventConnection: "connection", proposal.EventRequest: "request", proposal.EventDatagram: "datagram"}[r.Kind]
	if how == "" {
		how = code(r.Kind, 20)
	}
	if r.Kind == proposal.EventDatagram && r.Protocol != "" {
		how = code(r.Protocol, 20) + " " + how
	}
	if len(r.Calls) > 0 {
		how += " " + few(r.Calls, l)
	}
	if r.SNI != "" {
		how += " with the server name " + code(r.SNI, l.short)
	}
	if r.Program != "" {
		how += " by " + code(base(r.Program), l.short)
	}
	s := code(r.Destination(), l.short+60) + " (" + how
	if r.Count > 1 {
		s += ", " + text.Count(int64(r.Count)) + " times"
	}
	s += "):"
	if r.Rule != "" {
		s += " " + code(r.Rule, 80)
	}
	switch {
	case r.Message != "":
		s += " " + prose(r.Message, l.long)
		if l.list > 2 {
			s += instead(r.Suggestion, l)
		}
	case r.Code != "" && r.Rule == "":
		s += " " + code(r.Code, 40)
	}
	return s
}

// few shows the first of what a command has named, as many as there is room for.
func few(names []string, l level) string {
	n := min(len(names), 3, max(1, l.list/2))
	if n < len(names) {
		return several(names[:n], func(s string) string { return code(s, l.short) }) + fmt.Sprintf(", %d more", len(names)-n)
	}
	return several(names, func(s string) string { return code(s, l.short) })
}

// A trip is what was let through between one program and one place.
type trip struct {
	place, program        string
	lookups               int
	connections, requests int
	sent, received        int64
	calls, codes          []string
}

// tripsOf joins connections with the requests in them, in order. Of lookups only
// those are told that nothing followed.
func tripsOf(list []proposal.Reach) []trip {
	var trips []trip
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
			trips = append(trips, trip{place: key[0], program: r.Program})
		}
		trips[n].add(r)
	}
	return trips
}

func (v *trip) add(r proposal.Reach) {
	switch r.Kind {
	case proposal.EventLookup:
		v.lookups += r.Count
	case proposal.EventRequest:
		v.requests += r.Count
		v.calls = distinct(append(v.calls, r.Calls...))
	default:
		v.connections += r.Count
	}
	if r.Kind == proposal.EventConnection { // whose bytes hold its requests'
		v.sent, v.received = v.sent+r.Sent, v.received+r.Received
	}
	if r.Code != "" && !slices.Contains(v.codes, r.Code) {
		v.codes = append(v.codes, r.Code)
	}
}

func (v trip) line(l level) string {
	s := code(v.place, l.short+60)
	if v.program != "" {
		s += " by " + code(base(v.program), l.short)
	}
	var parts []string
	for _, n := range []struct {
		words string
		n     int
	}{{"looked up", v.lookups}, {"connections", v.connections}, {"requests", v.requests}} {
		if n.n > 0 {
			parts = append(parts, n.words+": "+text.Count(int64(n.n)))
		}
	}
	s += ": " + strings.Join(parts, ", ")
	if len(v.calls) > 0 {
		s += " (" + few(v.calls, l) + ")"
	}
	if v.sent+v.received > 0 {
		s += fmt.Sprintf("; %s out, %s in", text.Size(v.sent), text.Size(v.received))
	}
	if len(v.codes) > 0 {
		s += "; ended: " + several(v.codes, func(s string) string { return code(s, 40) })
	}
	return s
}

// plainNetwork is what was refused, for a terminal.
func plainNetwork(r proposal.Record) []string {
	var lines []string
	for _, group := range []struct {
		words string
		want  func(proposal.Reach) bool
	}{{"network refused: ", isRefused}, {"network would be refused: ", isWatched}} {
		for _, reach := range reaches(r, group.want) {
			s := group.words + text.Inline(reach.Destination(), 120) + times(reach.Count) + by(text.Inline(reach.Rule, 60))
			if reach.Program != "" {
				s += " (" + text.Inline(base(reach.Program), 60) + ")"
			}
			lines = append(lines, s)
		}
	}
	return lines
}

func quoteNetwork(list []proposal.Reach) []proposal.Reach {
	list = slices.Clone(list)
	for i := range list {
		list[i].Message, list[i].Suggestion = quote(list[i].Message), quote(list[i].Suggestion)
	}
	return list
}

// network checks what is said to have been done with the network.
func (p *prober) network(o proposal.Observations, path string) {
	refused, watched, all := 0, 0, 0
	for i, r := range o.Network {
		at := fmt.Sprintf("%s.network[%d]", path, i)
		p.oneOf(r.Kind, at+".kind", proposal.EventLookup, proposal.EventConnection, proposal.EventRequest, proposal.EventDatagram)
		p.hold(r.Count > 0, at+".count", "counts nothing")
		p.hold(r.Port >= 0 && r.Port < 1<<16, at+".port", "is no port")
		p.hold(!r.Refused || !r.Watched, at+".watched", "was refused and let through")
		p.count(at, int64(r.Count), r.Sent, r.Received)
		all += r.Count
		if r.Refused {
			refused += r.Count
		}
		if r.Watched {
			watched += r.Count
		}
	}
	c := o.Counts
	p.count(path+".counts", int64(c.Lookups), int64(c.Connections), int64(c.Requests), int64(c.Datagrams), int64(c.NetRefused), int64(c.NetWatched))
	p.hold(refused <= c.NetRefused && watched <= c.NetWatched && all <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".network", "has more than were counted")
	p.hold(c.NetRefused+c.NetWatched <= c.Lookups+c.Connections+c.Requests+c.Datagrams, path+".counts", "refused more than there was")
}
