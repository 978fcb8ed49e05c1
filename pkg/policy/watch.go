// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"
)

// A policy may be written to exhaust whoever reads it. Parsing and compiling cannot be
// cancelled, so they are left alone when they take too much: no engine comes of it, and
// the process that asked for one ends.
const (
	compileDeadline = 10 * time.Second
	compileMemory   = 1 << 30
	decisionMemory  = 512 << 20
	sampled         = 5 * time.Millisecond
)

// bounded waits for work, at most for limit, and while the heap grows by no more than
// compileMemory.
func bounded(ctx context.Context, limit time.Duration, layer string, work func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer guard(layer, &err)
		err = work()
	}()
	timeout, tick := time.NewTimer(limit), time.NewTicker(sampled)
	defer timeout.Stop()
	defer tick.Stop()
	for before := heap(); ; {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return stop(codeDeadline, "reading the policy was broken off", "try again", ctx.Err())
		case <-timeout.C:
			return stop(codeDeadline, fmt.Sprintf("the policy takes longer than %v to compile", limit), hintCompile, nil)
		case <-tick.C:
			if now := heap(); now > before+compileMemory {
				return stop(codeTooLarge, fmt.Sprintf("the policy takes more than %d MiB to compile", compileMemory>>20), hintCompile, nil)
			}
		}
	}
}

const hintCompile = "make it smaller: fewer rules, and expressions that nest less"

// heap is what the process's objects take, those included that nothing uses any more.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
