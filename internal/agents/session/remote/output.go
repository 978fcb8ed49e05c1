// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxQueued is how many bytes of output wait for their receiver, as for gate.WithOutput.
const maxQueued = 1 << 20

// An outputQueue passes output on to a receiver that may be slow, so that reading never waits.
type outputQueue struct {
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
func newOutlet(f func(proposal.Chunk), patience time.Duration) *outputQueue {
	o := &outputQueue{dropped: map[string]int64{}, done: make(chan struct{}), patience: patience}
	o.more = sync.NewCond(&o.mu)
	if f == nil {
		close(o.done)
		return o
	}
	go o.passChunks(f)
	return o
}

func (o *outputQueue) passChunks(f func(proposal.Chunk)) {
	defer close(o.done)
	for {
		c, any := o.nextChunk()
		if !any {
			return
		}
		f(c)
	}
}

// nextChunk waits for the next chunk.
func (o *outputQueue) nextChunk() (c proposal.Chunk, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.closed && !o.left {
		o.more.Wait()
	}
	if len(o.queue) == 0 || o.left {
		return c, false
	}
	c, o.queue = o.queue[0], o.queue[1:]
	o.bytes -= queueWeight(c)
	return c, true
}

// queueWeight is how much of the queue a chunk takes.
func queueWeight(c proposal.Chunk) int {
	n := minEvent + len(c.Data) + len(c.Withheld)
	if c.Display != nil {
		for _, form := range c.Display.Forms {
			n += len(form)
		}
	}
	return n
}

// droppedUnits is what a chunk counts in Dropped.
func droppedUnits(c proposal.Chunk) int64 {
	if c.Display != nil {
		return 1
	}
	return int64(len(c.Data))
}

// queueChunk queues c, or drops it. A display that is larger than the queue is passed on alone.
func (o *outputQueue) queueChunk(c proposal.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := maxQueued
	if c.Withheld != "" {
		room *= 2 // it comes once
	}
	if o.bytes > 0 && o.bytes+queueWeight(c) > room {
		o.dropped[c.Stream] += c.Dropped + droppedUnits(c)
		return
	}
	c.Dropped += o.dropped[c.Stream]
	delete(o.dropped, c.Stream)
	o.queue = append(o.queue, c)
	o.bytes += queueWeight(c)
	o.more.Signal()
}

// close waits until the receiver has all chunks, for at most patience. It is not called any
// more when close has returned, except if it has not returned itself.
func (o *outputQueue) close() {
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
