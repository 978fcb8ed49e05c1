// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	// maxQueued bounds the bytes that wait for a slow receiver.
	maxQueued = 1 << 20
	// pause is the time between two searches, so that a command that prints single letters
	// does not take the processor.
	pause = 10 * time.Millisecond
	// lastGrace is how long a receiver may take for what waits when the command has ended.
	lastGrace = 10 * time.Second
)

// Live passes to to what the command id prints while it runs, searched for secrets. Every
// find is replaced, whatever policy allows; where policy withholds the stream, it ends
// there, with a Chunk that says so. See package secrets for what differs from the search of
// the whole output: one letter of a masked value, and secrets that contain blanks.
//
// take never blocks: to is called by another goroutine, with one Chunk at a time. What does
// not fit into the queue is dropped and counted. endQueue waits until to has received all, at
// most for ten seconds; then to is not called again. It must be called once, after the last
// take has returned.
func (u *Redactor) Live(
	ctx context.Context, id string, to func(proposal.Chunk),
) (take func(proposal.Chunk), end func()) {
	l := &liveQueue{u: u, ctx: context.WithoutCancel(ctx), id: id, to: to, wake: make(chan struct{}, 1),
		over: make(chan struct{}), done: make(chan struct{}),
		lost: map[string]int64{}, streams: map[string]*liveStream{}}
	go l.processQueue()
	return l.enqueueChunk, l.endQueue
}

// A liveQueue is the queue of one command.
type liveQueue struct {
	u   *Redactor
	ctx context.Context
	id  string
	to  func(proposal.Chunk)

	mu    sync.Mutex
	queue []proposal.Chunk
	bytes int
	lost  map[string]int64 // dropped since the last Chunk, by stream
	late  bool             // to must not be called any more

	wake, over, done chan struct{}
	streams          map[string]*liveStream
}

func (l *liveQueue) enqueueChunk(c proposal.Chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, amount := sizeOf(c), int64(len(c.Data))
	if c.Stream == proposal.ChunkDisplay {
		amount = 1
	}
	if l.bytes+size > maxQueued {
		l.lost[c.Stream] += amount
		return
	}
	l.bytes += size
	c.Dropped, l.lost[c.Stream] = l.lost[c.Stream], 0
	if n := len(l.queue); n > 0 && c.Display == nil && c.Dropped == 0 && l.queue[n-1].Stream == c.Stream {
		l.queue[n-1].Data = append(l.queue[n-1].Data, c.Data...)
	} else {
		c.Data = bytes.Clone(c.Data)
		l.queue = append(l.queue, c)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sizeOf returns how much room a Chunk takes in the queue.
func sizeOf(c proposal.Chunk) int {
	size := len(c.Data)
	if c.Display != nil {
		for mime, form := range c.Display.Forms {
			size += len(mime) + len(form)
		}
		size += 1 << 10
	}
	return size
}

func (l *liveQueue) processQueue() {
	defer close(l.done)
	for over := false; !over; {
		select {
		case <-l.wake:
		case <-l.over:
			over = true
		}
		l.passAll()
		if !over {
			select {
			case <-l.over:
			case <-time.After(pause):
			}
		}
	}
	for _, stream := range []string{proposal.ChunkStdout, proposal.ChunkStderr, proposal.ChunkDisplay} {
		n := l.lost[stream]
		if s := l.streams[stream]; s != nil {
			_ = s.live.Close() // a buffer accepts everything
			l.passSearched(s, stream)
			n += s.dropped
		}
		if n > 0 {
			l.sendChunk(proposal.Chunk{Stream: stream, Dropped: n})
		}
	}
}

// passAll passes on what waits.
func (l *liveQueue) passAll() {
	l.mu.Lock()
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, c := range queue {
		if c.Display != nil {
			shown, _ := redactValue(l.u, *c.Display)
			l.sendChunk(proposal.Chunk{Stream: c.Stream, Display: &shown, Dropped: c.Dropped})
		} else {
			l.searchChunk(c)
		}
		l.mu.Lock()
		l.bytes -= sizeOf(c)
		l.mu.Unlock()
	}
}

// A liveStream is what is known of stdout or stderr.
type liveStream struct {
	live     *secrets.Live
	out      bytes.Buffer
	finds    int
	total    int64
	skip     int   // bytes to leave out after a gap
	dropped  int64 // since the last Chunk
	withheld bool
}

// searchChunk searches c and passes on what is known to be clean.
func (l *liveQueue) searchChunk(c proposal.Chunk) {
	s := l.streams[c.Stream]
	if s == nil {
		s = &liveStream{}
		s.live = l.u.redactor.Live(&s.out)
		l.streams[c.Stream] = s
		l.askPolicy(s, c.Stream)
	}
	if s.withheld {
		return
	}
	if c.Dropped > 0 {
		l.startAfterGap(s, c)
	}
	_, _ = s.live.Write(c.Data) // a buffer accepts everything
	l.passSearched(s, c.Stream)
}

// startAfterGap begins another text after a part that was dropped: of a secret that was cut in two,
// neither part may leave.
func (l *liveQueue) startAfterGap(s *liveStream, c proposal.Chunk) {
	s.dropped += c.Dropped + int64(s.live.HeldBytes())
	s.live, s.finds, s.skip = l.u.redactor.Live(&s.out), 0, margin
}

// askPolicy asks policy about s, and ends it if policy withholds it.
func (l *liveQueue) askPolicy(s *liveStream, stream string) {
	d, err := l.u.askPolicy(l.ctx, points.Outgoing{Command: l.id, Kind: stream, Size: s.total}, s.live.Tally())
	reason := ""
	switch {
	case err != nil:
		reason = "policy could not decide"
	case d.Effect != proposal.Allow:
		reason = withholdingRule(d)
	default:
		return
	}
	s.withheld = true
	l.sendChunk(proposal.Chunk{Stream: stream, Withheld: reason})
}

// passSearched passes on what the search has written.
func (l *liveQueue) passSearched(s *liveStream, stream string) {
	if n := s.live.FindCount(); n != s.finds && !s.withheld {
		s.finds = n
		l.askPolicy(s, stream)
	}
	data := bytes.Clone(s.out.Bytes())
	s.out.Reset()
	left := min(s.skip, len(data))
	s.skip, s.dropped, data = s.skip-left, s.dropped+int64(left), data[left:]
	if s.withheld || len(data) == 0 {
		return
	}
	s.total += int64(len(data))
	l.sendChunk(proposal.Chunk{Stream: stream, Data: data, Dropped: s.dropped})
	s.dropped = 0
}

// sendChunk calls the receiver, unless end has given up.
func (l *liveQueue) sendChunk(c proposal.Chunk) {
	l.mu.Lock()
	late := l.late
	l.mu.Unlock()
	if !late {
		l.to(c)
	}
}

func (l *liveQueue) endQueue() {
	close(l.over)
	timeout := time.NewTimer(lastGrace)
	defer timeout.Stop()
	select {
	case <-l.done:
	case <-timeout.C:
		l.mu.Lock()
		l.late = true
		l.mu.Unlock()
	}
}
