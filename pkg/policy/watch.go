// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

// A policy may be written to exhaust any process that reads it. Parsing and compiling
// cannot be cancelled, so they are abandoned when they take too much: no engine comes of
// it, and the process that asked for one ends.
const (
	compiling      = 10 // how many deadlines of a decision compiling a layer may take
	compileMemory  = 1 << 30
	decisionMemory = 512 << 20
	sampled        = 5 * time.Millisecond
	// backstop is the wall time after which work is given up that uses no processor time.
	backstop = 10 * time.Minute
)

// Bounds are what work may take.
type Bounds struct {
	Used   func() time.Duration // the processor time that the work has used
	Time   time.Duration        // of the processor
	Grace  time.Duration        // of the processor, after the work was cancelled
	Memory uint64               // by which the heap of the process may grow
	Heap   uint64               // the heap before the work; 0 is the heap at the first sample
}

// An Excess says why work was given up.
type Excess int

// The reasons. Within means that the work ended within its bounds.
const (
	Within Excess = iota
	TooLong
	TooLarge
	Cancelled // by the caller's context
)

// Wait waits until done is closed. When the work exceeds b or ctx is done, it calls
// cancel and gives the work its grace. abandoned means that the work ran on even then.
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
			b.Heap = heap()
		}
		if why != Within {
			if b.Used() > until || time.Now().After(last) {
				return why, true
			}
			continue
		}
		if why = b.exceeded(ctx, last); why != Within {
			until, last = b.Used()+b.Grace, time.Now().Add(backstop)
			cancel()
		}
	}
}

func (b Bounds) exceeded(ctx context.Context, last time.Time) Excess {
	switch {
	case ctx.Err() != nil:
		return Cancelled
	case b.Used() > b.Time || time.Now().After(last):
		return TooLong
	case heap() > b.Heap+b.Memory:
		return TooLarge
	}
	return Within
}

// bounded waits for work, which compiles a layer that we did not write, while that uses
// at most limit of processor time. work counts that by the meter in its context.
func bounded(ctx context.Context, limit time.Duration, layer string, work func(context.Context) error) error {
	inside, m := withMeter(ctx)
	b := Bounds{Used: m.used, Time: limit, Memory: compileMemory, Heap: heap()}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		defer guard(layer, &err)
		err = work(inside)
	}()
	switch why, _ := b.Wait(ctx, func() {}, done); why {
	case Cancelled:
		return stop(codeDeadline, "reading the policy was broken off", "try again", ctx.Err())
	case TooLong:
		return stop(codeDeadline, fmt.Sprintf("the policy takes more than %v of processor time to compile", limit), hintCompile, nil)
	case TooLarge:
		return stop(codeTooLarge, fmt.Sprintf("the policy takes more than %d MiB to compile", compileMemory>>20), hintCompile, nil)
	}
	return err
}

const hintCompile = "make it smaller: fewer rules, and expressions that nest less"

// heap is what the process's objects take, those included that nothing uses any more.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
