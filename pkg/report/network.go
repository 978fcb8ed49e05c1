// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reaches returns the network events of r's command for which want is true.
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

func isRefused(r proposal.Reach) bool  { return r.Refused }
func isWatched(r proposal.Reach) bool  { return r.Watched && !r.Refused }
func isPassed(r proposal.Reach) bool   { return !r.Refused && !r.Observed }
func isObserved(r proposal.Reach) bool { return r.Observed }

// refusedFlows counts the network events of r's command that were refused.
func refusedFlows(r proposal.Record) int {
	if o := seen(r); o != nil {
		return o.Counts.NetRefused
	}
	return 0
}

// destinations returns the destinations in list, each once.
func destinations(list []proposal.Reach) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.Destination())
	}
	return distinct(names)
}

// barred reports commands that tried to reach refused destinations. Their own success
// may hide that.
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
	s := fmt.Sprintf("⛔ <b>%s tried to reach hosts that are not allowed</b>: %s (%s, by %s).", commands(len(who)), several(distinct(where), show), attempts(n), several(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s still succeeded</b> without these hosts: check the output below.", commands(passed))
	}
	return s
}

// network has an item of a list for each kind of refusal of network events.
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
		{"⛔ network, refused", o.Counts.NetRefused, reaches(r, isRefused)},
		{"👁 network, would have been refused", o.Counts.NetWatched, reaches(r, isWatched)},
	} {
		if group.n > 0 {
			items = append(items, fmt.Sprintf("<li>%s: %s%s</li>", group.words, text.Count(int64(group.n)), list(group.list, l.list, func(r proposal.Reach) string { return barredLine(r, l) })))
		}
	}
	return items
}

// barredLine describes one refusal: the destination, the program, and the reason.
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

// few shows the first of the names that a command used, as many as fit.
func few(names []string, l level) string {
	n := min(len(names), 3, max(1, l.list/2))
	if n < len(names) {
		return several(names[:n], func(s string) string { return code(s, l.short) }) + fmt.Sprintf(", %d more", len(names)-n)
	}
	return several(names, func(s string) string { return code(s, l.short) })
}

// plainNetwork lists the refusals, for a terminal, without the one that is explained already.
func plainNetwork(r proposal.Record, explained *proposal.Reach) []string {
	var lines []string
	for _, group := range []struct {
		words string
		want  func(proposal.Reach) bool
	}{{"network refused: ", isRefused}, {"network would be refused: ", isWatched}} {
		for _, reach := range reaches(r, group.want) {
			if explained != nil && reflect.DeepEqual(reach, *explained) {
				continue
			}
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
