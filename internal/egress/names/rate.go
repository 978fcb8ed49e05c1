// SPDX-License-Identifier: Apache-2.0

package names

import (
	"sync"
	"time"
)

// An eventLimiter allows a number of events per second, with bursts of up to a second's
// worth.
type eventLimiter struct {
	a float64 // per second

	mu       sync.Mutex
	left     float64
	at       time.Time // the time at which left was computed
	reported time.Time
}

func newEventLimiter(perSecond int) *eventLimiter {
	return &eventLimiter{a: float64(perSecond), left: float64(perSecond)}
}

// allowEvent reports whether one more event may pass now, and if not, whether to
// report it.
func (r *eventLimiter) allowEvent(now time.Time) (ok, report bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() {
		r.left = min(r.a, r.left+r.a*now.Sub(r.at).Seconds())
	}
	r.at = now
	if r.left < 1 {
		return false, r.markReported(now)
	}
	r.left--
	return true, false
}

// shouldReport reports whether another report of a refused event is due.
func (r *eventLimiter) shouldReport(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.markReported(now)
}

func (r *eventLimiter) markReported(now time.Time) bool {
	if now.Sub(r.reported) < time.Second {
		return false
	}
	r.reported = now
	return true
}
