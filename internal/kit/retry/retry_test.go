// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for attempt := 1; attempt <= 5; attempt++ {
		middle := time.Second << (attempt - 1)
		for range 100 {
			if d := Backoff(time.Second, attempt); d < middle/2 || d >= middle*3/2 {
				t.Fatalf("attempt %d: %v", attempt, d)
			}
		}
	}
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "86401": maxAfter, "99999999999999999999": maxAfter,
		"Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 11:00:00 GMT": 0,
	} {
		if d, ok := ParseRetryAfter(value, now); d != want || !ok {
			t.Errorf("%q: %v, %v", value, d, ok)
		}
	}
	for _, value := range []string{"", "-1", "1.5", "soon"} {
		if d, ok := ParseRetryAfter(value, now); d != 0 || ok {
			t.Errorf("%q: %v, %v", value, d, ok)
		}
	}
}

func TestFits(t *testing.T) {
	now := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), now.Add(time.Minute))
	defer cancel()
	if !FitsDeadline(t.Context(), now, time.Hour) || !FitsDeadline(ctx, now, time.Minute) || FitsDeadline(ctx, now, time.Minute+1) {
		t.Error("the deadline is not what counts")
	}
}

func TestSleep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := Sleep(ctx, time.Nanosecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
