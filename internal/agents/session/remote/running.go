// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"sync"
)

// runningRequests are the requests that run, by id. The zero value has none.
type runningRequests struct {
	mu    sync.Mutex
	begun int
	byID  map[string]*runningRequest
}

type runningRequest struct {
	cancel    context.CancelFunc
	interrupt func() error // of a command in the background that has started
}

// beginRequest gives a request an id, and returns a context that cancel ends. end must be called.
func (r *runningRequests) beginRequest(ctx context.Context) (id string, _ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]*runningRequest{}
	}
	r.begun++
	id = fmt.Sprintf("c%d", r.begun)
	r.byID[id] = &runningRequest{cancel: cancel}
	return id, ctx, func() { cancel(); r.forgetRequest(id) }
}

func (r *runningRequests) forgetRequest(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// cancelRequest ends the context of a request that runs.
func (r *runningRequests) cancelRequest(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[id] == nil {
		return errNotRunning
	}
	r.byID[id].cancel()
	return nil
}

var errNotRunning = refuseRequest("the command does not run", "")

// setInterrupt sets what interrupt does with a request that runs.
func (r *runningRequests) setInterrupt(id string, interrupt func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id].interrupt = interrupt
}

// interruptRequest interrupts the command in the background of a request. It does nothing once that
// has ended.
func (r *runningRequests) interruptRequest(id string) error {
	r.mu.Lock()
	x := r.byID[id]
	r.mu.Unlock()
	switch {
	case x == nil:
		return nil
	case x.interrupt == nil:
		return errNotRunning
	}
	return x.interrupt()
}
