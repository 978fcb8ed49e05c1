// SPDX-License-Identifier: Apache-2.0

// Package hosts lists the network destinations of a run.
package hosts

import (
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Max is the maximum number of rows of Hosts.
const Max = 64

const (
	maxWho = 8 // commands of a row, and programs
	// maxTraffic is the most bytes of a row, so that no sum overflows.
	maxTraffic = 1 << 50
)

// ListHosts returns the destinations of records, or nil if no command used the network or was
// refused it. Equal records give equal Hosts.
func ListHosts(records []proposal.Record) *proposal.Hosts {
	t := hostTable{at: map[hostKey]int{}, visited: map[string]bool{}, who: map[whoKey]bool{}}
	for _, r := range records {
		t.markVisited(r)
	}
	for _, r := range records {
		t.addRecord(r)
	}
	if len(t.rows)+t.unlisted == 0 {
		return nil
	}
	h := &proposal.Hosts{Rows: append([]proposal.Host{}, Select(t.rows, Max)...), Unlisted: t.unlisted}
	h.Omitted = len(t.rows) - len(h.Rows)
	return h
}

// Select returns at most n of rows in their order, refused ones first: a command that tries many
// hosts in vain must not hide where data went, nor the reverse, so each kind has half of the
// room, and what the other leaves.
func Select(rows []proposal.Host, n int) []proposal.Host {
	var refused, passed []proposal.Host
	for _, h := range rows {
		if h.Verdict == proposal.VerdictRefused {
			refused = append(refused, h)
		} else {
			passed = append(passed, h)
		}
	}
	most := max(n/2, n-len(passed))
	refused = refused[:min(len(refused), most)]
	return slices.Concat(refused, passed[:min(len(passed), n-len(refused))])
}

type hostKey struct {
	host    string
	port    int
	verdict string
}

// A whoKey is a command or a program of a row.
type whoKey struct {
	row     int
	program bool
	name    string
}

// A hostTable is a Hosts being made.
type hostTable struct {
	rows     []proposal.Host
	at       map[hostKey]int
	who      map[whoKey]bool
	visited  map[string]bool // names that more was done with than a lookup
	unlisted int
}

// observationsOf returns the observations of r's run, and of its first run if there were two.
func observationsOf(r proposal.Record) (list []*proposal.Observations) {
	if r.Result == nil {
		return nil
	}
	if first := r.Result.Retried; first != nil && first.Observations != nil {
		list = append(list, first.Observations)
	}
	if r.Result.Observations != nil {
		list = append(list, r.Result.Observations)
	}
	return list
}

func (t *hostTable) markVisited(r proposal.Record) {
	for _, o := range observationsOf(r) {
		for _, reach := range o.Network {
			if reach.Kind != proposal.EventLookup {
				t.visited[reach.Name] = true
			}
		}
	}
}

func (t *hostTable) addRecord(r proposal.Record) {
	for _, o := range observationsOf(r) {
		listed := 0
		for _, reach := range o.Network {
			listed += reach.Count
			if reach.Kind == proposal.EventLookup && !reach.Refused && t.visited[reach.Name] {
				continue // what followed it is a row
			}
			t.did(t.row(reach), r.Proposal.ID, reach)
		}
		c := o.Counts
		t.unlisted += max(0, c.Lookups+c.Connections+c.Requests+c.Datagrams-listed)
	}
}

// row returns the index of r's row.
func (t *hostTable) row(r proposal.Reach) int {
	key := hostKey{r.Name, r.Port, r.Verdict()}
	if key.host == "" {
		key.host = r.Address
	}
	n, known := t.at[key]
	if !known {
		n = len(t.rows)
		t.at[key] = n
		t.rows = append(t.rows, proposal.Host{Host: key.host, Port: key.port, Verdict: key.verdict,
			Commands: []string{}})
	}
	return n
}

// did adds what the command id did to a row. The bytes of requests are those of their
// connections.
func (t *hostTable) did(row int, id string, r proposal.Reach) {
	h := &t.rows[row]
	if h.Rule == "" {
		h.Rule = r.Rule
	}
	h.Commands = t.list(h, whoKey{row, false, id}, h.Commands)
	if r.Program != "" {
		h.Programs = t.list(h, whoKey{row, true, r.Program}, h.Programs)
	}
	if r.Kind == proposal.EventConnection {
		h.Sent, h.Received = min(maxTraffic, h.Sent+r.Sent), min(maxTraffic, h.Received+r.Received)
	}
}

// list returns names with that of key, or counts it if there is no room.
func (t *hostTable) list(h *proposal.Host, key whoKey, names []string) []string {
	if t.who[key] {
		return names
	}
	t.who[key] = true
	if len(names) == maxWho {
		h.More++
		return names
	}
	return append(names, key.name)
}
