// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// grace is the processor time that a test may use after its deadline before it notices,
// and maxGrowth the maximum growth of the heap by a test.
const (
	grace     = time.Second
	maxGrowth = 1 << 30
)

// A watch passes rules that held to the current listener. Those of an abandoned test or
// engine are ignored.
type watch struct {
	mu     sync.Mutex
	number int // of the current listener
	hear   func(module.Place)
	also   func(module.Place) // a second listener
}

// setListener replaces the listener.
func (w *watch) setListener(hear func(module.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	w.hear, w.also = hear, nil
}

// addListener adds a second listener, until the first is replaced.
func (w *watch) addListener(hear func(module.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.also = hear
}

// newReporter returns a function that reports only to the current listener.
func (w *watch) newReporter() func(module.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.number
	return func(at module.Place) { w.reportPlace(at, &number) }
}

// reportPlace passes at to the listener. With a number, only to the listener with this number.
func (w *watch) reportPlace(at module.Place, number *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number != nil && *number != w.number {
		return
	}
	for _, hear := range []func(module.Place){w.hear, w.also} {
		if hear != nil {
			hear(at)
		}
	}
}

var (
	errEndless = errors.New("it did not end in time")
	errMemory  = fmt.Errorf("it took more than %d MiB of memory", maxGrowth>>20)
	errLeft    = errors.New("it did not end in time, could not be stopped, and was abandoned")
)

// runWithin waits for work until the process has used limit of processor time or its heap has
// grown too much, and a little longer for work to notice. Nothing else runs meanwhile:
// tests run one after the other.
func runWithin[T any](ctx context.Context, limit time.Duration, work func(context.Context) T) (T, error) {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	var v T
	var panicked any
	done := make(chan struct{})
	began := bounds.ProcessorTime()
	b := bounds.Bounds{Used: func() time.Duration { return bounds.ProcessorTime() - began }, Time: limit, Grace: grace,
		Memory: maxGrowth, Heap: bounds.HeapSize()}
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		v = work(inside)
	}()
	var none T
	switch why, abandoned := b.Wait(ctx, cancel, done); {
	case abandoned && why != bounds.TooLarge:
		return none, errLeft
	case why == bounds.TooLarge:
		return none, errMemory
	case why != bounds.Within:
		return none, errEndless
	case panicked != nil:
		return none, fmt.Errorf("the evaluator panicked: %v", panicked)
	}
	return v, nil
}
