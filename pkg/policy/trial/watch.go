// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/policy/bounds"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// grace is the processor time that a test may use after its deadline before it notices,
// and most how much the heap may grow by one.
const (
	grace = time.Second
	most  = 1 << 30
)

// A watch hands what is heard to whoever listens now. A test, or an engine, that was left
// behind speaks to nobody.
type watch struct {
	mu     sync.Mutex
	number int // of the listening
	hear   func(module.Place)
	also   func(module.Place) // besides
}

// listen begins a listening, and ends the one before.
func (w *watch) listen(hear func(module.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	w.hear, w.also = hear, nil
}

// besides has somebody listen too, until the listening ends.
func (w *watch) besides(hear func(module.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.also = hear
}

// teller speaks in this listening alone.
func (w *watch) teller() func(module.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.number
	return func(at module.Place) { w.tell(at, &number) }
}

// tell hands at over. With a number it does so in that listening alone.
func (w *watch) tell(at module.Place, number *int) {
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
	errMemory  = fmt.Errorf("it took more than %d MiB of memory", most>>20)
	errLeft    = errors.New("it did not end in time, nor when it was told to, and was left behind")
)

// within waits for work until the process has used limit of processor time or its heap
// has grown too far, and a little longer for work to notice. Nothing else works
// meanwhile: tests run one after the other.
func within[T any](ctx context.Context, limit time.Duration, work func(context.Context) T) (T, error) {
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	var v T
	var panicked any
	done := make(chan struct{})
	began := bounds.ProcessorTime()
	b := bounds.Bounds{Used: func() time.Duration { return bounds.ProcessorTime() - began }, Time: limit, Grace: grace, Memory: most, Heap: bounds.Heap()}
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
