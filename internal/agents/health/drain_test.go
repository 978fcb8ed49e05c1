// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// Work that began before the drain is waited for, and other work is not.
func TestDrain(t *testing.T) {
	var d Drain
	leave := d.Enter()
	if d.HasBegun() {
		t.Error("it has begun")
	}
	ended := make(chan struct{})
	go func() { d.Wait(t.Context()); close(ended) }()
	for !d.HasBegun() {
		time.Sleep(time.Millisecond)
	}
	d.Enter()() // nothing to wait for
	select {
	case <-ended:
		t.Error("it does not wait")
	case <-time.After(20 * time.Millisecond):
	}
	leave()
	<-ended
	var late Drain
	defer late.Enter()()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	late.Wait(ctx)
	if ctx.Err() == nil {
		t.Error("it ended before its context")
	}
}

// What WithGrace returns ends after the first context: after a time, at another signal, or when
// the caller says so, and not before.
func TestGrace(t *testing.T) {
	lanetest.SkipShort(t)
	for name, tt := range map[string]struct {
		grace time.Duration
		end   func(context.CancelFunc)
	}{
		"time":      {50 * time.Millisecond, func(context.CancelFunc) {}},
		"no time":   {0, func(context.CancelFunc) {}},
		"signal":    {time.Hour, func(context.CancelFunc) { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }},
		"cancelled": {time.Hour, func(cancel context.CancelFunc) { cancel() }},
	} {
		t.Run(name, func(t *testing.T) {
			caught := make(chan os.Signal, 10) // the test must outlive the signal, whenever it comes
			signal.Notify(caught, syscall.SIGTERM)
			defer signal.Stop(caught)
			ctx, end := context.WithCancel(t.Context())
			later, cancel := WithGrace(ctx, tt.grace)
			defer cancel()
			time.Sleep(2 * tt.grace % time.Second)
			if later.Err() != nil {
				t.Fatal("it ended before the first context")
			}
			end()
			for i := 0; later.Err() == nil && i < 1000; i++ {
				tt.end(cancel)
				time.Sleep(10 * time.Millisecond)
			}
			if later.Err() == nil {
				t.Error("it has not ended")
			}
		})
	}
}
