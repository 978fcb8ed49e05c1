// SPDX-License-Identifier: Apache-2.0

// Package bounds limits the processor time and the memory of work that may never end, such
// as the evaluation of a policy.
package bounds

import (
	"context"
	"runtime/metrics"
	"time"
)

const (
	sampled = 5 * time.Millisecond
	// backstop is the wall time after which work that uses no processor time is abandoned.
	backstop = 10 * time.Minute
)

// Bounds are the limits of work.
type Bounds struct {
	Used   func() time.Duration // returns the processor time that the work has used
	Time   time.Duration        // of the processor
	Grace  time.Duration        // of the processor, after the work was canceled
	Memory uint64               // by which the heap of the process may grow
	Heap   uint64               // the heap before the work; 0 is the heap at the first sample
}

// An Excess is the reason for which work was abandoned.
type Excess int

// The reasons. Within means that the work ended within its bounds.
const (
	Within Excess = iota
	TooLong
	TooLarge
	Cancelled // by the caller's context
)

// Wait waits until done is closed. When the work exceeds b or ctx is done, it calls cancel
// and waits for the work's grace. abandoned means that the work did not end even then.
func (b Bounds) Wait(ctx context.Context, cancel func(), done <-chan struct{}) (why Excess, abandoned bool) {
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	until, last := b.Time, time.Now().Add(backstop)
	for {
		select {
		case <-done:
			return why, false
		case <-tick.C:
		}
		if b.Heap == 0 {
			b.Heap = HeapSize()
		}
		if why != Within {
			if b.Used() > until || time.Now().After(last) {
				return why, true
			}
			continue
		}
		if why = b.exceededLimit(ctx, last); why != Within {
			until, last = b.Used()+b.Grace, time.Now().Add(backstop)
			cancel()
		}
	}
}

func (b Bounds) exceededLimit(ctx context.Context, last time.Time) Excess {
	switch {
	case ctx.Err() != nil:
		return Cancelled
	case b.Used() > b.Time || time.Now().After(last):
		return TooLong
	case HeapSize() > b.Heap+b.Memory:
		return TooLarge
	}
	return Within
}

// HeapSize is the size of the process's objects, including those that are no longer used.
func HeapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
