// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of what is kept of the network, in addition to those of each class.
const (
	// maxFlows is how many of a command's lookups, connections and requests the log
	// lists, and as many refused ones; later ones are only counted.
	maxFlows  = 10000
	maxInside = 4096    // places that the gateway reported
	maxCalls  = 4       // of one Reach
	maxCall   = 200     // bytes of one of them
	maxBytes  = 1 << 50 // of traffic, so that no sum overflows
)

// isFlow reports whether events of kind come from the gateway.
func isFlow(kind string) bool {
	switch kind {
	case proposal.EventLookup, proposal.EventConnection, proposal.EventRequest, proposal.EventDatagram:
		return true
	}
	return false
}

// countFlow counts e, whose Flow must not be nil, in c.
func countFlow(e proposal.Event, c *proposal.Counts) {
	var f journal.FlowCounts
	f.Add(e)
	f.AddTo(c)
}

// A reachKey is what must be equal for two Flows to be listed as one Reach.
type reachKey struct {
	kind, name, address string
	port                int
	protocol, program   string
	refused, watched    bool
	observed            bool
	code, rule          string
}

// addReach counts an event of the gateway, and lists it or adds it to the Reach like it.
func (t *tally) addReach(e proposal.Event) {
	countFlow(e, &t.o.Counts)
	if p := placeOf(e); p != "" && len(t.inside) < maxInside {
		t.inside[p] = true
	}
	one := ReachOf(e)
	key := reachKey{one.Kind, one.Name, one.Address, one.Port, one.Protocol, one.Program, one.Refused, one.Watched,
		one.Observed, one.Code, one.Rule}
	if one.Name != "" {
		key.address = ""
	}
	n, known := t.reached[key]
	if !known {
		if !t.reserveRoom(e) {
			return
		}
		n = len(t.o.Network)
		t.reached[key] = n
		t.o.Network = append(t.o.Network, one)
		t.firsts = append(t.firsts, e)
	}
	t.o.Network[n] = addFlow(t.o.Network[n], *e.Flow)
}

// addFlow returns r with one more Flow.
func addFlow(r proposal.Reach, f proposal.Flow) proposal.Reach {
	r.Count++
	r.Sent = min(maxBytes, r.Sent+f.Sent)
	r.Received = min(maxBytes, r.Received+f.Received)
	call := clipText(strings.TrimSpace(f.Egress.Method+" "+f.Egress.Path), maxCall)
	if call != "" && len(r.Calls) < maxCalls && !slices.Contains(r.Calls, call) {
		r.Calls = append(r.Calls, call)
	}
	return r
}

// ReachOf returns the Reach that e is listed in, without counts, calls and bytes. e must have a
// Flow.
func ReachOf(e proposal.Event) proposal.Reach {
	g, d := e.Flow.Egress, e.Flow.Decision
	r := proposal.Reach{Kind: e.Kind, Name: g.Name, Address: g.Address, Port: g.Port, Protocol: g.Protocol,
		Program: e.Program,
		Refused: e.Flow.Refused(), Code: e.Flow.Code}
	r.Watched = d.Observed && !r.Refused
	r.Observed = e.Flow.Verdict == proposal.VerdictObserved && !r.Refused
	if g.SNI != g.Name {
		r.SNI = g.SNI
	}
	if !r.Refused && !r.Watched {
		return r
	}
	if d.Reason != nil {
		r.Rule, r.Message, r.Suggestion = d.Reason.Rule, d.Reason.Message, d.Reason.Suggestion
	}
	if r.Rule == "" && d.Effect != proposal.Allow && len(d.Rules) > 0 {
		r.Rule = d.Rules[0]
	}
	return r
}

// sortedReaches returns the Reaches, refusals first.
func (t *tally) sortedReaches() []proposal.Reach {
	list := slices.Clone(t.o.Network)
	slices.SortStableFunc(list, func(a, b proposal.Reach) int { return cmp.Compare(refusalRank(a), refusalRank(b)) })
	return list
}

func refusalRank(r proposal.Reach) int {
	switch {
	case r.Refused:
		return 0
	case r.Watched:
		return 1
	}
	return 2
}

// refusedEvents returns the first event of each Reach that was refused or would have been.
func (t *tally) refusedEvents() []proposal.Event {
	var list []proposal.Event
	for _, e := range t.firsts {
		if classOf(e) == barred {
			list = append(list, e)
		}
	}
	return list
}

// withoutFlows drops calls whose outcome the gateway reported, by name.
func (t *tally) withoutFlows(notable []proposal.Event) (kept []proposal.Event, dropped int) {
	kept = []proposal.Event{}
	for _, e := range notable {
		at := placeOf(e)
		if t.inside[at] || t.inside[anyResolver] && strings.HasSuffix(at, anyResolver) {
			dropped += e.Times
			continue
		}
		kept = append(kept, e)
	}
	return kept, dropped
}

func trimmedFlow(f proposal.Flow) proposal.Flow {
	g := &f.Egress
	g.Command, g.Grants = "", nil // the event and the decision's entry say them
	g.Kind, g.Phase, g.Name, g.Type = clipText(g.Kind, maxName), clipText(g.Phase, maxName), clipText(g.Name, maxName),
		clipText(g.Type, maxName)
	g.Address, g.Protocol, g.SNI = clipText(g.Address, maxName), clipText(g.Protocol, maxName), clipText(g.SNI, maxName)
	g.Method, g.Path = clipText(g.Method, maxName), clipText(g.Path, maxArgv)
	g.Port, g.Query, g.Size = min(max(0, g.Port), 1<<16-1), max(0, g.Query), min(max(-1, g.Size), maxBytes)
	g.Registries, _ = cutList(g.Registries, maxName)
	g.Secrets = slices.Clone(g.Secrets[:min(len(g.Secrets), maxRules)])
	for i, s := range g.Secrets {
		g.Secrets[i] = proposal.EgressSecret{Rule: clipText(s.Rule, maxName), Where: clipText(s.Where, maxName)}
	}
	f.Code, f.Inside, f.Verdict = clipText(f.Code, maxName), clipText(f.Inside, maxName), clipText(f.Verdict, maxName)
	f.Sent, f.Received, f.WallMS = min(max(0, f.Sent), maxBytes), min(max(0, f.Received), maxBytes),
		min(max(0, f.WallMS), 1<<40)
	f.Status = min(max(0, f.Status), 999)
	d := trimmedDecision(proposal.ExecDecision{Rules: f.Decision.Rules, Reason: f.Decision.Reason})
	f.Decision.Rules, f.Decision.Reason = d.Rules, d.Reason
	return f
}

// weightOfFlow estimates how many bytes f takes.
func weightOfFlow(f proposal.Flow) int {
	g := f.Egress
	n := 500 + len(g.Name) + len(g.SNI) + len(g.Address) + len(g.Path) + 80*len(g.Secrets)
	if r := f.Decision.Reason; r != nil {
		n += 300 + len(r.Message) + len(r.Suggestion)
	}
	return n
}
