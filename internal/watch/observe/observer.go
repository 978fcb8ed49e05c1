// SPDX-License-Identifier: Apache-2.0

// Package observe turns what gVisor's kernel and the gateway see of a command into its
// record: every event in the audit log, in the order in which they came, and the
// Observations in the command's Result.
//
// Nothing is logged or kept that was not redacted. The log is complete or the record says
// that it is not. What is kept in memory and what is listed in a report are bounded; what
// exceeds a bound is counted.
//
// The package decides nothing and trusts no event: the lengths of all texts are limited, and
// a kernel that was broken into can make the record wrong, but not unbounded.
package observe

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of one "events" entry.
const (
	batchEvents = 512
	batchBytes  = 256 << 10
	batchAge    = 250 * time.Millisecond
)

// A Judge returns policy's findings about an event. An error means that policy could not
// answer, and ends the run.
type Judge func(context.Context, proposal.Event) ([]proposal.Finding, error)

// An Observer receives the events of the running commands, writes each one to the log, and
// turns them into the Results' Observations. New makes one; the zero Observer cannot be
// used. An event of the gateway may be written up to half a second after the kernel's
// events of the same moment, while it waits for the kernel to report which process caused
// it.
//
// It keeps a bounded number of events: when the log is slower than the command, AddEvent waits,
// and its caller with it. A log that cannot be written ends the command and the run.
type Observer struct {
	log   journal.Log
	judge Judge

	mu      sync.Mutex
	room    sync.Cond                // the batch was taken, or the command is over
	watches map[string]*commandWatch // of the running commands, by id
	strays  int                      // events that came when their command did not run
}

// A commandWatch is what an Observer knows of one command.
type commandWatch struct {
	id       string
	decision int64
	clean    func(proposal.Event) proposal.Event
	stop     context.CancelCauseFunc
	tally    *tally
	joiner   joiner
	next     int64 // number of the next event
	files    int
	flows    [2]int // let through, and refused

	batch journal.Events
	bytes int
	wake  chan struct{}
	done  chan struct{} // closed when no more events come
	wrote chan struct{} // closed when the last batch is in the log
	err   error
	dead  bool // the log takes no more
}

// New returns an Observer that writes to log and asks judge once about each different
// event of note. Both are required: without one of them it returns a *proposal.StopError
// (observe.incomplete).
func New(log journal.Log, judge Judge) (*Observer, error) {
	if log == nil || judge == nil {
		return nil, missingPartError("the log or the judge")
	}
	o := &Observer{log: log, judge: judge, watches: map[string]*commandWatch{}}
	o.room.L = &o.mu
	return o, nil
}

func missingPartError(what string) error {
	return &proposal.StopError{Code: "observe.incomplete", Message: "cannot observe commands: " + what + " is missing",
		Hint: "use package gate, which connects all stages"}
}

// AddEvent takes one event of a running command, between its Begin and End. Any other event makes
// every later record incomplete. Events of the kernel must come in order, all of them before the
// Runner's Run returns; those of the gateway may come concurrently, all of them before the
// Network's End returns. AddEvent may wait for the log, and keeps nothing of e.
func (o *Observer) AddEvent(e proposal.Event) {
	w := o.findWatch(e.Command)
	if w != nil {
		e = trimEvent(w.clean(e))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if w == nil {
		o.strays++ // so that no record is called complete that may lack it
		return
	}
	for w.isBatchFull() && !w.dead && o.watches[w.id] == w {
		o.room.Wait()
	}
	switch {
	case o.watches[w.id] != w:
		o.strays++
	case w.dead:
	case e.Flow != nil:
		w.takeAll(w.joiner.joinGatewayEvent(e))
	default:
		w.takeEvent(e)
		w.takeAll(w.joiner.addCall(e))
	}
}

// findWatch returns the watch of a running command, or nil.
func (o *Observer) findWatch(id string) *commandWatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watches[id]
}

func (w *commandWatch) takeAll(list []proposal.Event) {
	for _, e := range list {
		w.takeEvent(e)
	}
}

// takeEvent adds e to the tally and the batch.
func (w *commandWatch) takeEvent(e proposal.Event) {
	if w.onlyCounted(e) {
		return
	}
	w.tally.addEvent(e)
	if len(w.batch.Events) == 0 {
		w.batch.First = w.next
	}
	w.next++
	w.batch.Events = append(w.batch.Events, e)
	if w.bytes += eventSize(e); w.isBatchFull() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// onlyCounted reports whether there were too many events of e's kind to list one more, and
// then counts it.
func (w *commandWatch) onlyCounted(e proposal.Event) bool {
	switch c := classOf(e); c {
	case files:
		if w.files++; w.files > maxFiles {
			w.tally.o.Counts.Writes++
			w.batch.More++
			return true
		}
	case passed, barred:
		n := &w.flows[c-passed]
		if *n++; *n > maxFlows {
			if w.batch.Flows == nil {
				w.batch.Flows = &journal.FlowCounts{}
			}
			w.batch.Flows.Add(e)
			countFlow(e, &w.tally.o.Counts)
			return true
		}
	}
	return false
}

func (w *commandWatch) isBatchFull() bool {
	return len(w.batch.Events) >= batchEvents || w.bytes >= batchBytes
}

// Begin observes the command of r until End. Other commands may run meanwhile, with other
// ids. clean redacts each event before anything is
// kept of it; it is required, and a missing one is a *proposal.StopError
// (observe.incomplete). stop is called when the log fails, to end the command.
func (o *Observer) Begin(
	r proposal.Record, clean func(proposal.Event) proposal.Event, stop context.CancelCauseFunc,
) error {
	if clean == nil {
		return missingPartError("the redaction of events")
	}
	w := &commandWatch{id: r.Proposal.ID, decision: r.Entry, clean: clean, stop: stop, tally: newTally(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), wrote: make(chan struct{})}
	w.batch = w.emptyBatch()
	o.mu.Lock()
	o.watches[w.id] = w
	o.mu.Unlock()
	go o.writeBatches(w)
	return nil
}

func (w *commandWatch) emptyBatch() journal.Events {
	return journal.Events{ID: w.id, Decision: w.decision, First: w.next}
}

// writeBatches writes batches until the command is over and the last one is written.
func (o *Observer) writeBatches(w *commandWatch) {
	defer close(w.wrote)
	tick := time.NewTicker(batchAge)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-w.wake:
		case <-tick.C:
			o.mu.Lock()
			w.takeAll(w.joiner.releaseExpired())
			o.mu.Unlock()
		case <-w.done:
			over = true
		}
		o.flushEvents(w)
	}
}

// flushEvents writes the events that are not yet written.
func (o *Observer) flushEvents(w *commandWatch) {
	o.mu.Lock()
	batch := w.batch
	w.batch, w.bytes = w.emptyBatch(), 0
	o.room.Broadcast()
	o.mu.Unlock()
	if batch.IsEmpty() {
		return
	}
	if _, err := o.log.Write("events", batch); err != nil {
		o.mu.Lock()
		w.dead = true
		o.mu.Unlock()
		o.keepError(w, err)
	}
}

// Fail ends the running commands and the run with err: for callers that answer the
// sandbox's questions about a command and cannot. Without a command it does nothing.
func (o *Observer) Fail(err error) {
	o.mu.Lock()
	running := slices.Collect(maps.Values(o.watches))
	o.mu.Unlock()
	for _, w := range running {
		o.keepError(w, err)
	}
}

// AnswerExec returns d, the answer about a program, as the sandbox needs it: with an error the program
// is refused, and what runs is stopped as by Fail.
func (o *Observer) AnswerExec(d proposal.ExecDecision, err error) proposal.ExecDecision {
	if err == nil {
		return d
	}
	o.Fail(err)
	f := proposal.FailureOf(err)
	return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{f.Code},
		Reason: &proposal.Reason{Rule: f.Code, Effect: proposal.Deny,
			Message: "policy could not decide about the program", Suggestion: f.Hint, Command: -1}}
}

// keepError keeps the first error. Later events still go to the log, unless the log failed.
func (o *Observer) keepError(w *commandWatch, err error) {
	o.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	o.room.Broadcast()
	o.mu.Unlock()
	w.stop(err)
}

// End returns what was seen of the command id since Begin, which must have succeeded. recorded
// is what the sandbox says of the record: its Dropped and Complete, or nil when it watched
// nothing. Without any event it then returns nil. An error means that the log, the judge or
// a caller of Fail failed, and ends the run.
func (o *Observer) End(
	ctx context.Context, id string, recorded *proposal.Observations,
) (*proposal.Observations, error) {
	o.mu.Lock()
	w := o.watches[id]
	delete(o.watches, id)
	o.room.Broadcast()
	if w == nil {
		o.mu.Unlock()
		return nil, missingPartError("the command's Begin")
	}
	strays := o.strays
	w.takeAll(w.joiner.releaseEvents(len(w.joiner.parked)))
	o.mu.Unlock()
	close(w.done)
	<-w.wrote
	if recorded == nil && w.next == 0 && w.batch.IsEmpty() {
		return nil, w.err
	}
	seen := w.tally.makeObservations()
	if recorded != nil {
		seen.Counts.Dropped = recorded.Counts.Dropped
		seen.Complete = recorded.Complete
	}
	seen.Counts.Dropped += strays
	seen.Complete = seen.Complete && seen.Counts.Dropped == 0 && w.err == nil
	if w.err != nil {
		return &seen, w.err
	}
	found, err := o.askJudge(ctx, seen.Execs, w.tally.refusedEvents(), w.tally.o.Notable)
	seen.Findings, seen.Complete = append(seen.Findings, found...), seen.Complete && err == nil
	return &seen, err
}

// askJudge asks the judge about the events of note, refusals first.
func (o *Observer) askJudge(ctx context.Context, lists ...[]proposal.Event) (found []proposal.Finding, err error) {
	for _, e := range slices.Concat(lists...) {
		if e.Kind == proposal.EventExec && !isObservedOnly(e) {
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
