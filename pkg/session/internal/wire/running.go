// SPDX-License-Identifier: Apache-2.0

//go:build linux

package wire

import (
	"context"
	"fmt"
	"sync"
)

// Running are the requests that run, by id. The zero value has none.
type Running struct {
	mu    sync.Mutex
	begun int
	now   map[string]*request
}

// A request is one that runs.
type request struct {
	cancel    context.CancelFunc
	interrupt func() error // of a command in the background that has started
}

// Begin gives a request an id, and returns a context that Cancel ends. end must be called.
func (r *Running) Begin(ctx context.Context) (id string, _ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = map[string]*request{}
	}
	r.begun++
	id = fmt.Sprintf("c%d", r.begun)
	r.now[id] = &request{cancel: cancel}
	return id, ctx, func() { cancel(); r.forget(id) }
}

func (r *Running) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.now, id)
}

// Cancel ends the context of a request that runs.
func (r *Running) Cancel(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now[id] == nil {
		return errNotRunning
	}
	r.now[id].cancel()
	return nil
}

var errNotRunning = Refusal("the command does not run", "")

// Started sets what Interrupt does with a request that runs.
func (r *Running) Started(id string, interrupt func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[id].interrupt = interrupt
}

// Interrupt interrupts the command in the background of a request. It does nothing once that has ended.
func (r *Running) Interrupt(id string) error {
	r.mu.Lock()
	x := r.now[id]
	r.mu.Unlock()
	switch {
	case x == nil:
		return nil
	case x.interrupt == nil:
		return errNotRunning
	}
	return x.interrupt()
}

// Count returns how many requests have begun, and how many of them run.
func (r *Running) Count() (begun, running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, len(r.now)
}
