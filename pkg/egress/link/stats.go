// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync/atomic"
	"time"
)

// Stats are counts since New.
type Stats struct {
	Frames      uint64 // that came
	Odd         uint64 // of them, dropped for what they were
	Datagrams   uint64 // of them, neither TCP nor questions; some were told
	Busy        uint64 // connections and questions refused for being too many
	Connections uint64 // that were put to the Handler, or ask questions
	Open        int    // connections that are open now, those being decided included
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

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }
