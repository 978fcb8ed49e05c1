// SPDX-License-Identifier: Apache-2.0

package cputime

import (
	"context"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func spin(ctx context.Context) {
	for ctx.Err() == nil {
	}
}

func TestWithinEndsWork(t *testing.T) {
	const limit = 30 * time.Millisecond
	clock := Start()
	RunWithin(t.Context(), limit, spin)
	if used := clock.Stop(); used < limit {
		t.Errorf("ended after %v of %v", used, limit)
	}
}

// Waiting, and the work of other threads, uses none of the time.
func TestWithinCountsNoWaiting(t *testing.T) {
	lanetest.SkipShort(t)
	busy, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	go spin(busy)
	RunWithin(t.Context(), 100*time.Millisecond, func(ctx context.Context) {
		<-busy.Done()
		if ctx.Err() != nil {
			t.Error("ended although it only waited")
		}
	})
}

func TestWithinEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	RunWithin(ctx, time.Hour, spin)
}
