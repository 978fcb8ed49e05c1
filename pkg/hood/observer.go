// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The maximum number of events that wait for the log, and how long they wait.
const (
	batchEvents = 512
	batchBytes  = 256 << 10
	batchAge    = 250 * time.Millisecond
)

// An Observer receives what gVisor's kernel and the gateway saw of the running command.
// It writes each event to the log, in order of arrival, and converts them to the
// Result's Observations. An event of the gateway may be written up to half a second
// later than its neighbors, when it waits for the kernel's event that names the process.
//
// It keeps a bounded number of events: if the log is slower than the command, See blocks,
// and so does its caller. A log that cannot be written ends the command and the run.
type Observer struct {
	clean func(proposal.Event) proposal.Event // the Outlet's; set by New before anything is watched
	log   Log
	judge func(context.Context, proposal.Event) ([]proposal.Finding, error)

	mu     sync.Mutex
	room   sync.Cond // signals that the batch was taken, or that the watch has ended
	watch  *watch    // of the running command, or nil
	strays int       // events received when their command was not running
}

// A watch is the Observer's state for one command.
type watch struct {
	id       string
	decision int64
	stop     context.CancelCauseFunc
	tally    *tally
	joiner   joiner
	next     int64 // number of the next event
	files    int
	flows    [2]int // allowed, and refused

	batch eventsOf
	bytes int
	wake  chan struct{}
	done  chan struct{} // closed when no more events will come
	wrote chan struct{} // closed when the last batch is in the log
	err   error
	dead  bool // the log accepts no more
}

// NewObserver returns an Observer that writes to log. judge, which may be nil, is
// called once for each distinct notable event.
func NewObserver(log Log, judge func(context.Context, proposal.Event) ([]proposal.Finding, error)) *Observer {
	o := &Observer{log: log, judge: judge}
	o.room.L = &o.mu
	return o
}

// See receives one event. Events of the kernel must come in order, all of them before the
// Runner's Run returns; those of the gateway may come concurrently, all of them before
// the Network's End returns. It may wait for the log, and keeps no reference to e.
func (o *Observer) See(e proposal.Event) {
	if o.clean != nil {
		e = o.clean(e)
	}
	e = trimmed(e)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watch
	if w == nil || e.Command != w.id {
		o.strays++ // so that a record that may lack it is never called complete
		return
	}
	for w.full() && !w.dead && o.watch == w {
		o.room.Wait()
	}
	switch {
	case o.watch != w:
		o.strays++
	case w.dead:
	case e.Flow != nil:
		w.takeAll(w.joiner.joined(e))
	default:
		w.take(e)
		w.takeAll(w.joiner.called(e))
	}
}

func (w *watch) takeAll(list []proposal.Event) {
	for _, e := range list {
		w.take(e)
	}
}

// take adds e to the tally and the batch.
func (w *watch) take(e proposal.Event) {
	if w.beyond(e) {
		return
	}
	w.tally.add(e)
	if len(w.batch.Events) == 0 {
		w.batch.First = w.next
	}
	w.next++
	w.batch.Events = append(w.batch.Events, e)
	if w.bytes += weight(e); w.full() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// beyond reports whether there were too many events of e's kind to list e, and counts
// it if so.
func (w *watch) beyond(e proposal.Event) bool {
	switch c := classOf(e); c {
	case files:
		if w.files++; w.files > mostFiles {
			w.tally.o.Counts.Writes++
			w.batch.More++
			return true
		}
	case passed, barred:
		n := &w.flows[c-passed]
		if *n++; *n > mostFlows {
			if w.batch.Flows == nil {
				w.batch.Flows = &flowCounts{}
			}
			w.batch.Flows.add(e)
			countFlow(e, &w.tally.o.Counts)
			return true
		}
	}
	return false
}

func (w *watch) full() bool { return len(w.batch.Events) >= batchEvents || w.bytes >= batchBytes }

// begin starts to watch the command of r. stop is called if the log fails.
func (o *Observer) begin(r proposal.Record, stop context.CancelCauseFunc) {
	w := &watch{id: r.Proposal.ID, decision: r.Entry, stop: stop, tally: newTally(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), wrote: make(chan struct{})}
	w.batch = w.empty()
	o.mu.Lock()
	o.watch = w
	o.mu.Unlock()
	go o.write(w)
}

func (w *watch) empty() eventsOf { return eventsOf{ID: w.id, Decision: w.decision, First: w.next} }

// write writes batches until the command is over and the last one is written.
func (o *Observer) write(w *watch) {
	defer close(w.wrote)
	tick := time.NewTicker(batchAge)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-w.wake:
		case <-tick.C:
			o.mu.Lock()
			w.takeAll(w.joiner.tick())
			o.mu.Unlock()
		case <-w.done:
			over = true
		}
		o.flush(w)
	}
}

// flush writes the events that have not been written yet.
func (o *Observer) flush(w *watch) {
	o.mu.Lock()
	batch := w.batch
	w.batch, w.bytes = w.empty(), 0
	o.room.Broadcast()
	o.mu.Unlock()
	if batch.isEmpty() {
		return
	}
	if _, err := o.log.Append("events", batch); err != nil {
		o.mu.Lock()
		w.dead = true
		o.mu.Unlock()
		o.fail(w, err)
	}
}

// Fail ends the running command and the run with err, for callers that cannot answer
// the sandbox's questions about the command.
func (o *Observer) Fail(err error) {
	o.mu.Lock()
	w := o.watch
	o.mu.Unlock()
	if w != nil {
		o.fail(w, err)
	}
}

// fail records the first error. Later events still go to the log, unless it is the log
// that failed.
func (o *Observer) fail(w *watch, err error) {
	o.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	o.room.Broadcast()
	o.mu.Unlock()
	w.stop(err)
}

// end returns what was seen of the command. recorded is the sandbox's statement about the
// record, nil if it watched nothing. An error means that the log or the judge failed.
func (o *Observer) end(ctx context.Context, recorded *proposal.Observations) (*proposal.Observations, error) {
	o.mu.Lock()
	w := o.watch
	o.watch = nil
	strays := o.strays
	w.takeAll(w.joiner.release(len(w.joiner.parked)))
	o.mu.Unlock()
	close(w.done)
	<-w.wrote
	if recorded == nil && w.next == 0 && w.batch.isEmpty() {
		return nil, w.err
	}
	seen := w.tally.observations()
	if recorded != nil {
		seen.Counts.Dropped = recorded.Counts.Dropped
		seen.Complete = recorded.Complete
	}
	seen.Counts.Dropped += strays
	seen.Complete = seen.Complete && seen.Counts.Dropped == 0 && w.err == nil
	if w.err != nil {
		return &seen, w.err
	}
	found, err := o.findings(ctx, seen.Execs, w.tally.against(), w.tally.o.Notable)
	seen.Findings, seen.Complete = append(seen.Findings, found...), seen.Complete && err == nil
	return &seen, err
}

// findings asks the judge about notable events, refusals first.
func (o *Observer) findings(ctx context.Context, lists ...[]proposal.Event) (found []proposal.Finding, err error) {
	if o.judge == nil {
		return nil, nil
	}
	for _, e := range slices.Concat(lists...) {
		if e.Kind == proposal.EventExec && !watched(e) {
			continue
		}
		some, err := o.judge(context.WithoutCancel(ctx), e)
		if err != nil {
			return found, err
		}
		found = append(found, some...)
	}
	return found, nil
}
