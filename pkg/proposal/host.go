// SPDX-License-Identifier: Apache-2.0

package proposal

import "slices"

// The verdicts of a Host.
const (
	VerdictAllowed  = "allowed"
	VerdictRefused  = "refused"  // by policy or by the gateway
	VerdictWatched  = "watched"  // allowed, but a policy on trial would have refused it
	VerdictObserved = "observed" // let through because nothing was enforced
)

// Bounds of Hosts.
const (
	MaxHosts = 64 // rows
	maxWho   = 8  // commands of a row, and programs
	// maxTraffic is the most bytes of a row, so that no sum overflows.
	maxTraffic = 1 << 50
)

// Hosts are the network destinations of a whole run.
type Hosts struct {
	Rows []Host `json:"rows"` // refused ones first; at most MaxHosts
	// Omitted counts rows beyond MaxHosts, and Unlisted the network events whose destination
	// no Observations list. The log has them.
	Omitted  int `json:"omitted,omitempty"`
	Unlisted int `json:"unlisted,omitempty"`
}

// A Host is one destination of a run, with everything that commands did there with one
// verdict. Its texts are untrusted.
type Host struct {
	Host    string `json:"host"`           // the name, or the address if it was not looked up
	Port    int    `json:"port,omitempty"` // 0 for a name that was only looked up
	Verdict string `json:"verdict"`        // a Verdict constant
	Rule    string `json:"rule,omitempty"` // the first that refused it, or would have
	// Commands are IDs of proposals, and Programs are paths, as far as known; at most eight
	// of each. More counts the others.
	Commands []string `json:"commands"`
	Programs []string `json:"programs,omitempty"`
	More     int      `json:"more,omitempty"`
	Sent     int64    `json:"sent"`     // bytes that connections sent
	Received int64    `json:"received"` // bytes that connections received
}

// Destination returns the destination of h: "name:443", "192.0.2.1:22".
func (h Host) Destination() string { return destination(h.Host, "", h.Port) }

// HostsOf returns the destinations of records, or nil if no command used the network or was
// refused it. Equal records give equal Hosts.
func HostsOf(records []Record) *Hosts {
	t := hostTable{at: map[hostKey]int{}, visited: map[string]bool{}, who: map[whoKey]bool{}}
	for _, r := range records {
		t.visit(r)
	}
	for _, r := range records {
		t.add(r)
	}
	if len(t.rows)+t.unlisted == 0 {
		return nil
	}
	h := &Hosts{Rows: append([]Host{}, Selected(t.rows, MaxHosts)...), Unlisted: t.unlisted}
	h.Omitted = len(t.rows) - len(h.Rows)
	return h
}

// Selected returns at most n of rows in their order, refused ones first: a command that tries many
// hosts in vain must not hide where data went, nor the reverse, so each kind has half of the
// room, and what the other leaves.
func Selected(rows []Host, n int) []Host {
	var refused, passed []Host
	for _, h := range rows {
		if h.Verdict == VerdictRefused {
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
	rows     []Host
	at       map[hostKey]int
	who      map[whoKey]bool
	visited  map[string]bool // names that more was done with than a lookup
	unlisted int
}

// observationsOf returns the observations of r's run, and of its first run if there were two.
func observationsOf(r Record) (list []*Observations) {
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

func (t *hostTable) visit(r Record) {
	for _, o := range observationsOf(r) {
		for _, reach := range o.Network {
			if reach.Kind != EventLookup {
				t.visited[reach.Name] = true
			}
		}
	}
}

func (t *hostTable) add(r Record) {
	for _, o := range observationsOf(r) {
		listed := 0
		for _, reach := range o.Network {
			listed += reach.Count
			if reach.Kind == EventLookup && !reach.Refused && t.visited[reach.Name] {
				continue // what followed it is a row
			}
			t.did(t.row(reach), r.Proposal.ID, reach)
		}
		c := o.Counts
		t.unlisted += max(0, c.Lookups+c.Connections+c.Requests+c.Datagrams-listed)
	}
}

// row returns the index of r's row.
func (t *hostTable) row(r Reach) int {
	key := hostKey{r.Name, r.Port, r.Verdict()}
	if key.host == "" {
		key.host = r.Address
	}
	n, known := t.at[key]
	if !known {
		n = len(t.rows)
		t.at[key] = n
		t.rows = append(t.rows, Host{Host: key.host, Port: key.port, Verdict: key.verdict, Commands: []string{}})
	}
	return n
}

// did adds what the command id did to a row. The bytes of requests are those of their
// connections.
func (t *hostTable) did(row int, id string, r Reach) {
	h := &t.rows[row]
	if h.Rule == "" {
		h.Rule = r.Rule
	}
	h.Commands = t.list(h, whoKey{row, false, id}, h.Commands)
	if r.Program != "" {
		h.Programs = t.list(h, whoKey{row, true, r.Program}, h.Programs)
	}
	if r.Kind == EventConnection {
		h.Sent, h.Received = min(maxTraffic, h.Sent+r.Sent), min(maxTraffic, h.Received+r.Received)
	}
}

// list returns names with that of key, or counts it if there is no room.
func (t *hostTable) list(h *Host, key whoKey, names []string) []string {
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

// Verdict returns what became of r: a Verdict constant.
func (r Reach) Verdict() string {
	switch {
	case r.Refused:
		return VerdictRefused
	case r.Observed:
		return VerdictObserved
	case r.Watched:
		return VerdictWatched
	}
	return VerdictAllowed
}
