// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A LogEvent is what one entry of a run's log says. Which fields are set depends on the
// entry's kind. All of it may come from an untrusted log.
type LogEvent struct {
	ID       string             // the proposal's; "" for the run as a whole
	Run      *proposal.Run      // "run"
	Proposal *proposal.Proposal // "decision", with the next three
	Analysis *proposal.Analysis
	Decision *proposal.Decision
	Approved bool
	Redacted []proposal.Redaction // "decision": what was replaced in it
	First    int64                // "events": the number of the first, in its command
	Events   []proposal.Event     // in order
	More     int64                // file events that are only counted
	Flows    int                  // network events that are only counted
	Result   *proposal.Result     // "result" and "cached", without streams and listed events
	Again    bool                 // "start": of a second run
	Attempt  *proposal.Attempt    // "attempt", without streams and listed events
	Transfer *proposal.Transfer   // "transfer"
	Base     string               // "base": the commit
	Totals   *proposal.Totals     // "end"
	Error    *proposal.Failure
}

// Decode reads e. An error means that it is not an entry of a run that this version
// knows; logs hold others too.
func (e Entry) Decode() (LogEvent, error) {
	switch e.Kind {
	case "run":
		var run proposal.Run
		err := e.decodeBody(&run)
		return LogEvent{Run: &run}, err
	case "decision":
		var d Decision
		err := e.decodeBody(&d)
		return LogEvent{ID: d.ID, Proposal: &d.Proposal, Analysis: &d.Analysis, Decision: &d.Decision,
			Approved: d.Approved, Redacted: d.Redacted}, err
	case "start":
		var s Start
		err := e.decodeBody(&s)
		return LogEvent{ID: s.ID, Again: s.Again}, err
	case "events":
		var b Events
		err := e.decodeBody(&b)
		l := LogEvent{ID: b.ID, First: b.First, Events: b.Events, More: b.More}
		if b.Flows != nil {
			l.Flows = b.Flows.countEvents()
		}
		return l, err
	case "attempt":
		var a Attempt
		err := e.decodeBody(&a)
		return LogEvent{ID: a.ID, Attempt: &a.Attempt}, err
	case "result", "cached":
		var r Result
		err := e.decodeBody(&r)
		return LogEvent{ID: r.ID, Result: &r.Result}, err
	case "transfer":
		var t proposal.Transfer
		err := e.decodeBody(&t)
		return LogEvent{Transfer: &t}, err
	case "base":
		var b Base
		err := e.decodeBody(&b)
		return LogEvent{Base: b.Commit}, err
	case "end":
		var end End
		err := e.decodeBody(&end)
		return LogEvent{Totals: &end.Totals, Error: end.Error}, err
	}
	return LogEvent{}, fmt.Errorf("unsupported kind of entry %q", e.Kind)
}

func (e Entry) decodeBody(v any) error {
	if err := json.Unmarshal(e.Body, v); err != nil {
		return fmt.Errorf("invalid %s entry: %v", e.Kind, err)
	}
	return nil
}
