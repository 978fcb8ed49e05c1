// SPDX-License-Identifier: Apache-2.0

// Package retry says how long to wait before the next attempt, and waits. Which
// failures are worth another attempt, and how many, each caller decides.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAfter bounds the seconds that a server can ask for.
const maxAfter = 24 * time.Hour

// Backoff returns how long to wait after an attempt, of which the first is 1: first,
// doubled with each further attempt, give or take a half, so that many jobs that failed
// together do not come back together.
func Backoff(first time.Duration, attempt int) time.Duration {
	d := max(first<<(attempt-1), 1) // rand.N panics below 1
	return d/2 + rand.N(d)
}

// ParseRetryAfter reads the value of a Retry-After header: seconds, or a date that is counted from
// now. It is never negative, and seconds are at most a day; ok is false for a value that is neither.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0), true
	}
	seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return time.Duration(min(seconds, uint64(maxAfter/time.Second))) * time.Second, true
}

// FitsDeadline reports whether ctx allows a wait of d from now on.
func FitsDeadline(ctx context.Context, now time.Time, d time.Duration) bool {
	end, limited := ctx.Deadline()
	return !limited || !now.Add(d).After(end)
}

// Sleep waits for d. Its error is ctx's, which ended first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
