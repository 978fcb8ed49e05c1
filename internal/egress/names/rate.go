// SPDX-License-Identifier: Apache-2.0

package names

import (
	"sync"
	"time"
)

// A rate allows a number of events per second, with bursts of up to a second's
// worth.
type rate struct {
	a float64 // per second

	mu       sync.Mutex
	left     float64
	at       time.Time // the time at which left was computed
	reported time.Time
}

func newRate(perSecond int) *rate {
	return &rate{a: float64(perSecond), left: float64(perSecond)}
}

// take reports whether one more event may pass now, and if not, whether to
// report it.
func (r *rate) take(now time.Time) (ok, report bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() {
		r.left = min(r.a, r.left+r.a*now.Sub(r.at).Seconds())
	}
	r.at = now
	if r.left < 1 {
		return false, r.again(now)
	}
	r.left--
	return true, false
}

// report reports whether another report of a refused event is due.
func (r *rate) report(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again(now)
}

func (r *rate) again(now time.Time) bool {
	if now.Sub(r.reported) < time.Second {
		return false
	}
	r.reported = now
	return true
}
