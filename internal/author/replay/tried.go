// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/hosts"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A TriedHost is a destination that commands tried while the network was only observed.
type TriedHost struct {
	Host     string   `json:"host"`           // the entry of network that would grant it
	Phases   []string `json:"phases"`         // of the commands
	Verdict  string   `json:"verdict"`        // proposal.VerdictObserved, or proposal.VerdictRefused: not even then
	Rule     string   `json:"rule,omitempty"` // that refused it, or would have
	Commands []string `json:"commands"`       // texts of the first commands
	Programs []string `json:"programs,omitempty"`
	Sent     int64    `json:"sent"`
	Received int64    `json:"received"`
}

// countHeld counts what d has of programs and connections.
func (d *Act) countHeld() int { return len(d.Execs) + len(d.Flows) + len(d.Reaches) }

// addTried adds the network events of a log.
func (d *Act) addTried(events []proposal.Event) {
	for _, e := range events {
		if e.Flow == nil {
			continue
		}
		r := observe.ReachOf(e)
		r.Count, r.Sent, r.Received = 1, max(0, e.Flow.Sent), max(0, e.Flow.Received)
		d.addReach(r)
	}
}

// maxTriedText is the length of a command that is shown.
const maxTriedText = 200

// triedHosts collects the hosts of runs, by phase.
type triedHosts map[string][]proposal.Record

// addHosts adds the hosts of one command. It returns false if there was one that no rule could name.
func (t triedHosts) addHosts(d Act) (plain bool) {
	plain = true
	var list []proposal.Reach
	for _, r := range d.Reaches {
		switch {
		case r.Kind == proposal.EventDatagram: // which nothing grants
		case !plainHost(r):
			plain = false
		default:
			list = append(list, r)
		}
	}
	phase := d.Proposal.Phase
	if phase == "" {
		phase = proposal.PhaseRun
	}
	t[phase] = append(t[phase], proposal.Record{Proposal: proposal.Proposal{ID: text.Inline(strings.TrimSpace(d.Text()),
		maxTriedText)},
		Result: &proposal.Result{Observations: &proposal.Observations{Network: list}}})
	return plain
}

var hostName = pattern.New(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$`)

// plainHost reports whether the destination of r can be written as an entry of network.
func plainHost(r proposal.Reach) bool {
	if r.Name != "" {
		return len(r.Name) < 254 && hostName.MatchString(r.Name)
	}
	_, err := netip.ParseAddr(r.Address)
	return err == nil
}

// entryOf returns the entry of network for h: a port is needed only if it is not a usual one.
func entryOf(h proposal.Host) string {
	if h.Port == 0 || h.Port == 443 || h.Port == 80 {
		return h.Host
	}
	return net.JoinHostPort(h.Host, strconv.Itoa(h.Port))
}

// listHosts returns the hosts in order, of each phase at most hosts.Max.
func (t triedHosts) listHosts() []TriedHost {
	at := map[string]*TriedHost{}
	for _, phase := range sortedKeys(t) {
		found := hosts.ListHosts(t[phase])
		if found == nil {
			continue
		}
		for _, h := range found.Rows {
			entry := entryOf(h)
			if at[entry] == nil {
				at[entry] = &TriedHost{Host: entry, Verdict: h.Verdict, Commands: []string{}}
			}
			at[entry].addRow(phase, h)
		}
	}
	var all []TriedHost
	for _, entry := range sortedKeys(at) {
		all = append(all, *at[entry])
	}
	return all
}

// maxTriedWho is how many commands and programs of one host are listed.
const maxTriedWho = 5

func (h *TriedHost) addRow(phase string, row proposal.Host) {
	if !slices.Contains(h.Phases, phase) {
		h.Phases = append(h.Phases, phase)
	}
	if row.Verdict != proposal.VerdictRefused {
		h.Verdict = row.Verdict
	}
	if h.Rule == "" {
		h.Rule = row.Rule
	}
	h.Commands, h.Programs = firstDistinct(h.Commands, row.Commands), firstDistinct(h.Programs, row.Programs)
	h.Sent, h.Received = min(maxTraffic, h.Sent+row.Sent), min(maxTraffic, h.Received+row.Received)
}

// firstDistinct returns the first different ones of both lists.
func firstDistinct(list, more []string) []string {
	for _, s := range more {
		if len(list) < maxTriedWho && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

const judgeTried = `# Written by fumehood policy suggest from runs whose network was observed and not enforced.
# Nothing here has an effect. Judge each host: who owns it, and does a test need it? To grant one,
# remove the first "# " of its last four lines.
package fumehood.proposal
`

// writeTried writes the hosts that were tried as rules in comments.
func (s Suggestion) writeTried(b *strings.Builder) {
	b.WriteString(judgeTried)
	for i, h := range s.Tried {
		fmt.Fprintf(b, "\n# Tried by %s", quoteComment(strings.Join(h.Commands, " and by ")))
		if len(h.Programs) > 0 {
			fmt.Fprintf(b, " (%s)", quoteComment(strings.Join(h.Programs, ", ")))
		}
		fmt.Fprintf(b, ": %d bytes sent, %d received.\n", h.Sent, h.Received)
		switch {
		case h.Verdict == proposal.VerdictRefused:
			fmt.Fprintf(b, "# It was refused even so %s. Such a host may need more than this rule.\n",
				quoteComment(byRule(h.Rule, "because its address is not public")))
		case h.Rule != "":
			fmt.Fprintf(b, "# The policy would have refused it, by %s.\n", quoteComment(h.Rule))
		}
		fmt.Fprintf(b, "#\n# # METADATA\n# # title: %s\n# # custom: {rule: tried.host-%d}\n",
			quoteText("A host that was tried: "+h.Host), i+1)
		fmt.Fprintf(b, "# network contains {\"rule\": \"tried.host-%d\", \"host\": %s} if %s\n", i+1, quoteText(h.Host),
			membershipOf("input.proposal.phase", h.Phases))
	}
}

func byRule(rule, otherwise string) string {
	if rule == "" {
		return otherwise
	}
	return "by " + rule
}
