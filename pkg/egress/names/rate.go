// SPDX-License-Identifier: Apache-2.0

package names

import (
	"sync"
	"time"
)

// A rate lets so many through a second, a second's worth of them at once.
type rate struct {
	a float64 // a second

	mu   sync.Mutex
	left float64
	at   time.Time // when left was so
	told time.Time
}

func newRate(perSecond int) *rate {
	return &rate{a: float64(perSecond), left: float64(perSecond)}
}

// take says whether one more may pass now, and if not, whether to tell of it.
func (r *rate) take(now time.Time) (ok, tell bool) {
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

// tell says whether it is time again to tell of what did not pass.
func (r *rate) tell(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again(now)
}

func (r *rate) again(now time.Time) bool {
	if now.Sub(r.told) < time.Second {
		return false
	}
	r.told = now
	return true
}
