// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxQueued is how many bytes of output wait for their receiver, as for gate.WithOutput.
const maxQueued = 1 << 20

// An outlet passes output on to a receiver that may be slow, so that reading never waits.
type outlet struct {
	mu       sync.Mutex
	more     *sync.Cond
	queue    []proposal.Chunk
	bytes    int
	dropped  map[string]int64 // by stream, since the last chunk that was queued
	closed   bool             // nothing more comes
	left     bool             // the receiver is not called any more
	done     chan struct{}
	patience time.Duration // of close
}

// newOutlet returns an outlet to f. close must be called; it waits for f for at most patience.
func newOutlet(f func(proposal.Chunk), patience time.Duration) *outlet {
	o := &outlet{dropped: map[string]int64{}, done: make(chan struct{}), patience: patience}
	o.more = sync.NewCond(&o.mu)
	if f == nil {
		close(o.done)
		return o
	}
	go o.run(f)
	return o
}

func (o *outlet) run(f func(proposal.Chunk)) {
	defer close(o.done)
	for {
		c, any := o.next()
		if !any {
			return
		}
		f(c)
	}
}

// next waits for the next chunk.
func (o *outlet) next() (c proposal.Chunk, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed && !o.left {
		o.more.Wait()
	}
	if len(o.queue) == 0 || o.left {
		return c, false
	}
	c, o.queue = o.queue[0], o.queue[1:]
	o.bytes -= weight(c)
	return c, true
}

// weight is how much of the queue a chunk takes.
func weight(c proposal.Chunk) int {
	n := minEvent + len(c.Data) + len(c.Withheld)
	if c.Display != nil {
		for _, form := range c.Display.Forms {
			n += len(form)
		}
	}
	return n
}

// size is what a chunk counts in Dropped.
func size(c proposal.Chunk) int64 {
	if c.Display != nil {
		return 1
	}
	return int64(len(c.Data))
}

// add queues c, or drops it. A display that is larger than the queue is passed on alone.
func (o *outlet) add(c proposal.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := maxQueued
	if c.Withheld != "" {
		room *= 2 // it comes once
	}
	if o.bytes > 0 && o.bytes+weight(c) > room {
		o.dropped[c.Stream] += c.Dropped + size(c)
		return
	}
	c.Dropped += o.dropped[c.Stream]
	delete(o.dropped, c.Stream)
	o.queue = append(o.queue, c)
	o.bytes += weight(c)
	o.more.Signal()
}

// close waits until the receiver has all chunks, for at most patience. It is not called any
// more when close has returned, except if it has not returned itself.
func (o *outlet) close() {
	o.mu.Lock()
	for stream, n := range o.dropped {
		o.queue = append(o.queue, proposal.Chunk{Stream: stream, Dropped: n})
	}
	clear(o.dropped)
	o.closed = true
	o.more.Signal()
	o.mu.Unlock()
	late := time.NewTimer(o.patience)
	defer late.Stop()
	select {
	case <-o.done:
	case <-late.C:
		o.mu.Lock()
		o.left = true
		o.mu.Unlock()
	}
}
