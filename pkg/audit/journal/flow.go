// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// FlowCounts are counts of the network's events.
type FlowCounts struct {
	Lookups     int `json:"lookups,omitempty"`
	Connections int `json:"connections,omitempty"`
	Requests    int `json:"requests,omitempty"`
	Datagrams   int `json:"datagrams,omitempty"`
	Refused     int `json:"refused,omitempty"`
	Watched     int `json:"watched,omitempty"`
}

// Add counts e, whose Flow must not be nil.
func (f *FlowCounts) Add(e proposal.Event) {
	switch e.Kind {
	case proposal.EventLookup:
		f.Lookups++
	case proposal.EventConnection:
		f.Connections++
	case proposal.EventRequest:
		f.Requests++
	case proposal.EventDatagram:
		f.Datagrams++
	}
	if e.Flow.Refused() {
		f.Refused++
	} else if e.Flow.Decision.Observed {
		f.Watched++
	}
}

// AddTo adds f to c.
func (f FlowCounts) AddTo(c *proposal.Counts) {
	c.Lookups += f.Lookups
	c.Connections += f.Connections
	c.Requests += f.Requests
	c.Datagrams += f.Datagrams
	c.NetRefused += f.Refused
	c.NetWatched += f.Watched
}

// countEvents counts each event once.
func (f FlowCounts) countEvents() int { return f.Lookups + f.Connections + f.Requests + f.Datagrams }

// Valid reports whether no count of f is negative. In an untrusted log one can be.
func (f FlowCounts) Valid() bool {
	return slices.Min([]int{f.Lookups, f.Connections, f.Requests, f.Datagrams, f.Refused, f.Watched}) >= 0
}
