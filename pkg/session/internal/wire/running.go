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
	ends  map[string]context.CancelFunc
}

// Begin gives a request an id, and returns a context that Cancel ends. end must be called.
func (r *Running) Begin(ctx context.Context) (id string, _ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = map[string]context.CancelFunc{}
	}
	r.begun++
	id = fmt.Sprintf("c%d", r.begun)
	r.ends[id] = cancel
	return id, ctx, func() { cancel(); r.forget(id) }
}

func (r *Running) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, id)
}

// Cancel ends the context of a request that runs.
func (r *Running) Cancel(id string) error {
	r.mu.Lock()
	cancel := r.ends[id]
	r.mu.Unlock()
	if cancel == nil {
		return Refusal("the command does not run", "")
	}
	cancel()
	return nil
}

// Count returns how many requests have begun, and how many of them run.
func (r *Running) Count() (begun, running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, len(r.ends)
}
