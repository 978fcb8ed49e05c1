// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// filterReaches returns the network events of r's command for which want is true.
func filterReaches(r proposal.Record, want func(proposal.Reach) bool) []proposal.Reach {
	o := observationsOf(r)
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
	if o := observationsOf(r); o != nil {
		return o.Counts.NetRefused
	}
	return 0
}

// distinctDestinations returns the destinations in list, each once.
func distinctDestinations(list []proposal.Reach) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.Destination())
	}
	return distinctStrings(names)
}

// refusedHostsLine reports commands that tried to reach refused destinations. Their own success
// may hide that.
func (p Page) refusedHostsLine(l detailLevel) string {
	var who, where []string
	n, passed := 0, 0
	for _, r := range p.allRecords() {
		if refusedFlows(r) == 0 {
			continue
		}
		n += refusedFlows(r)
		who = append(who, r.Proposal.ID)
		where = append(where, distinctDestinations(filterReaches(r, isRefused))...)
		if r.Result.Succeeded() {
			passed++
		}
	}
	if n == 0 {
		return ""
	}
	show := func(s string) string { return formatCode(s, l.short) }
	s := fmt.Sprintf("⛔ <b>%s tried to reach hosts that are not allowed</b>: %s (%s, by %s).", countCommands(len(who)),
		showSeveral(distinctStrings(where), show), countAttempts(n), showSeveral(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s still succeeded</b> without these hosts: check the output below.",
			countCommands(passed))
	}
	return s
}

// networkItems has an item of a list for each kind of refusal of network events.
func networkItems(r proposal.Record, l detailLevel) []string {
	o := observationsOf(r)
	if o == nil {
		return nil
	}
	var items []string
	for _, group := range []struct {
		words string
		n     int
		list  []proposal.Reach
	}{
		{"⛔ network, refused", o.Counts.NetRefused, filterReaches(r, isRefused)},
		{"👁 network, would have been refused", o.Counts.NetWatched, filterReaches(r, isWatched)},
	} {
		if group.n > 0 {
			items = append(items, fmt.Sprintf("<li>%s: %s%s</li>", group.words, text.FormatCount(int64(group.n)),
				htmlList(group.list, l.list, func(r proposal.Reach) string { return barredLine(r, l) })))
		}
	}
	return items
}

// barredLine describes one refusal: the destination, the program, and the reason.
func barredLine(r proposal.Reach, l detailLevel) string {
	how := map[string]string{proposal.EventLookup: "looked up", proposal.EventConnection: "connection",
		proposal.EventRequest: "request", proposal.EventDatagram: "datagram"}[r.Kind]
	if how == "" {
		how = formatCode(r.Kind, 20)
	}
	if r.Kind == proposal.EventDatagram && r.Protocol != "" {
		how = formatCode(r.Protocol, 20) + " " + how
	}
	if len(r.Calls) > 0 {
		how += " " + showFew(r.Calls, l)
	}
	if r.SNI != "" {
		how += " with the server name " + formatCode(r.SNI, l.short)
	}
	if r.Program != "" {
		how += " by " + formatCode(baseName(r.Program), l.short)
	}
	s := formatCode(r.Destination(), l.short+60) + " (" + how
	if r.Count > 1 {
		s += ", " + text.FormatCount(int64(r.Count)) + " times"
	}
	s += "):"
	if r.Rule != "" {
		s += " " + formatCode(r.Rule, 80)
	}
	switch {
	case r.Message != "":
		s += " " + formatProse(r.Message, l.long)
		if l.list > 2 {
			s += insteadText(r.Suggestion, l)
		}
	case r.Code != "" && r.Rule == "":
		s += " " + formatCode(r.Code, 40)
	}
	return s
}

// showFew shows the first of the names that a command used, as many as fit.
func showFew(names []string, l detailLevel) string {
	n := min(len(names), 3, max(1, l.list/2))
	if n < len(names) {
		return showSeveral(names[:n], func(s string) string { return formatCode(s, l.short) }) +
			fmt.Sprintf(", %d more", len(names)-n)
	}
	return showSeveral(names, func(s string) string { return formatCode(s, l.short) })
}

// plainNetwork lists the refusals, for a terminal, without the one that is explained already.
func plainNetwork(r proposal.Record, explained *proposal.Reach) []string {
	var lines []string
	for _, group := range []struct {
		words string
		want  func(proposal.Reach) bool
	}{{"network refused: ", isRefused}, {"network would be refused: ", isWatched}} {
		for _, reach := range filterReaches(r, group.want) {
			if explained != nil && reflect.DeepEqual(reach, *explained) {
				continue
			}
			s := group.words + text.Inline(reach.Destination(), 120) + timesSuffix(reach.Count) +
				byRule(text.Inline(reach.Rule, 60))
			if reach.Program != "" {
				s += " (" + text.Inline(baseName(reach.Program), 60) + ")"
			}
			lines = append(lines, s)
		}
	}
	return lines
}

func quoteNetwork(list []proposal.Reach) []proposal.Reach {
	list = slices.Clone(list)
	for i := range list {
		list[i].Message, list[i].Suggestion = quoteCode(list[i].Message), quoteCode(list[i].Suggestion)
	}
	return list
}
