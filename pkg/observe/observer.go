// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// How many events wait for the log at most, and how long.
const (
	batchEvents = 512
	batchBytes  = 256 << 10
	batchAge    = 250 * time.Millisecond
)

// An Observer takes what gVisor's kernel and the gateway saw of the running command:
// it writes each event to the log, in the order in which they came, and turns them into
// the Result's Observations. An event of the gateway may be written up to half a second
// after those that came with it, when it waits for the kernel's word of who it was.
//
// It keeps a bounded number of events: when the log is slower than the command, See
// waits, and with it whoever reports. A log that cannot be written ends the command
// and the run.
type Observer struct {
	clean func(proposal.Event) proposal.Event // the Outlet's; New sets it, and before that nothing is watched
	log   Log
	judge func(context.Context, proposal.Event) ([]proposal.Finding, error)

	mu     sync.Mutex
	room   sync.Cond // the batch was taken, or all is over
	watch  *watch    // of the running command, or nil
	strays int       // events that came when their command did not run
}

// A watch is what an Observer knows of one command.
type watch struct {
	id       string
	decision int64
	stop     context.CancelCauseFunc
	tally    *tally
	joiner   joiner
	next     int64 // number of the next event
	files    int
	flows    [2]int // let through, and refused

	batch eventsOf
	bytes int
	wake  chan struct{}
	done  chan struct{} // closed when no more events come
	wrote chan struct{} // closed when the last batch is in the log
	err   error
	dead  bool // the log takes no more
}

// NewObserver returns an Observer that writes to log. judge, which may be nil, is
// asked once about each different event of note.
func NewObserver(log Log, judge func(context.Context, proposal.Event) ([]proposal.Finding, error)) *Observer {
	o := &Observer{log: log, judge: judge}
	o.room.L = &o.mu
	return o
}

// See takes one event. Events of the kernel must come in order, all of them before the
// Runner's Run returns; those of the gateway may come at the same time from elsewhere,
// all of them before the Network's End returns. It may wait for the log, and keeps
// nothing of e.
func (o *Observer) See(e proposal.Event) {
	if o.clean != nil {
		e = o.clean(e)
	}
	e = trimmed(e)
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.watch
	if w == nil || e.Command != w.id {
		o.strays++ // so that no record is called complete that may lack it
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

// take enters e into the tally and the batch.
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

// beyond reports whether e is of a kind of which there were too many to be told one by
// one, and counts it then.
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

// begin watches the command of r. stop is called when the log fails.
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

// flush writes what has been seen and not been written.
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

// Fail ends the running command and the run with err: for whoever answers the
// sandbox's questions about the command and cannot.
func (o *Observer) Fail(err error) {
	o.mu.Lock()
	w := o.watch
	o.mu.Unlock()
	if w != nil {
		o.fail(w, err)
	}
}

// fail keeps the first error. What is seen from then on still goes to the log, if it
// is not the log that failed.
func (o *Observer) fail(w *watch, err error) {
	o.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	o.room.Broadcast()
	o.mu.Unlock()
	w.stop(err)
}

// end returns what was seen of the command; recorded is what the sandbox says of
// the record, nil when it watched nothing. An error means that the log or the judge
// failed.
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

// findings asks the judge about what is of note, refusals first.
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
