// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync/atomic"
	"time"
)

// Stats are counts since New.
type Stats struct {
	Frames      uint64 // received
	Odd         uint64 // of these, dropped because no plain host sends them
	Datagrams   uint64 // of these, neither TCP nor DNS queries; some were reported
	Busy        uint64 // connections and queries refused because of a limit
	Connections uint64 // passed to the Handler, or carrying DNS queries
	Open        int    // connections that are open now, including undecided ones
}

type counts struct {
	frames, odd, datagrams, busy, connections atomic.Uint64
}

// Stats returns the counts.
func (l *Link) Stats() Stats {
	return Stats{
		Frames:      l.counts.frames.Load(),
		Odd:         l.counts.odd.Load(),
		Datagrams:   l.counts.datagrams.Load(),
		Busy:        l.counts.busy.Load(),
		Connections: l.counts.connections.Load(),
		Open:        len(l.open),
	}
}

func deadlineAfter(d time.Duration) time.Time { return time.Now().Add(d) }
