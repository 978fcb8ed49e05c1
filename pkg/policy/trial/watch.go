// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/policy"
)

// grace is how long a test whose deadline has passed may take to notice, and most how
// much the heap may grow by one.
const (
	grace   = time.Second
	most    = 1 << 30
	sampled = 20 * time.Millisecond
)

// A watch hands what is heard to whoever listens now. A test, or an engine, that was left
// behind speaks to nobody.
type watch struct {
	mu     sync.Mutex
	number int // of the listening
	hear   func(policy.Place)
	also   func(policy.Place) // besides
}

// listen begins a listening, and ends the one before.
func (w *watch) listen(hear func(policy.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	w.hear, w.also = hear, nil
}

// besides has somebody listen too, until the listening ends.
func (w *watch) besides(hear func(policy.Place)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.also = hear
}

// teller speaks in this listening alone.
func (w *watch) teller() func(policy.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.number
	return func(at policy.Place) { w.tell(at, &number) }
}

// tell hands at over. With a number it does so in that listening alone.
func (w *watch) tell(at policy.Place, number *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number != nil && *number != w.number {
		return
	}
	for _, hear := range []func(policy.Place){w.hear, w.also} {
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

// within waits for work until limit has passed or the heap has grown too far, and a
// little longer for it to notice.
func within[T any](ctx context.Context, limit time.Duration, work func(context.Context) T) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan T, 1)
	panicked := make(chan any, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				panicked <- r
			}
		}()
		done <- work(ctx)
	}()
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	var none T
	for before := policy.Heap(); ; {
		select {
		case v := <-done:
			return v, nil
		case r := <-panicked:
			return none, fmt.Errorf("the evaluator panicked: %v", r)
		case <-ctx.Done():
			return none, left(done, errEndless)
		case <-tick.C:
			if policy.Heap() > before+most {
				cancel()
				return none, left(done, errMemory)
			}
		}
	}
}

// left gives work that was cancelled its grace.
func left[T any](done <-chan T, err error) error {
	select {
	case <-done:
		return err
	case <-time.After(grace):
		return errLeft
	}
}
