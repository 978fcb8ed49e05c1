// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"io"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Log verifies a log, then passes each decision in it to each, in order, and
// returns the run as a whole. From a log that was cut off it exports the signed
// entries. If a log does not verify, it exports nothing and returns the
// *audit.VerifyError. An error of each ends Log and is returned.
func Log(log io.ReadSeeker, trust audit.Trust, o Options, each func(Decision) error) (Story, audit.Summary, error) {
	summary, err := audit.Verify(log, trust)
	if err != nil {
		return Story{}, summary, err
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return Story{}, summary, unreadableLog(err)
	}
	r := reader{emitter: emitter{o: o, each: each, log: sealState(summary), key: summary.Key,
		checkpoint: summary.Checkpoint}}
	again, err := audit.Scan(log, trust, r.handleEntry)
	var changed *audit.VerifyError
	switch {
	case errors.As(err, &changed) || err == nil && again != summary:
		return r.story, summary, &proposal.StopError{Code: "export.changed",
			Message: "the log changed while it was read",
			Hint:    "export a copy of it, or wait until nothing writes to it"}
	case err != nil:
		return r.story, summary, err
	case !r.began:
		return r.story, summary, &proposal.StopError{Code: "export.no-run", Message: "the log contains no run",
			Hint: "name the audit.jsonl of fumehood run or of the action's artifact"}
	}
	r.story.Log, r.story.End = r.log, r.last
	return r.story, summary, r.exportRunEnd(r.story, summary.Entries, r.last)
}

// LogFile is Log of the file at path.
func LogFile(path string, trust audit.Trust, o Options, each func(Decision) error) (Story, error) {
	f, err := audit.OpenFile(path)
	if err != nil {
		return Story{}, err
	}
	defer f.Close()
	story, _, err := Log(f, trust, o, each)
	return story, err
}

// WriteLog writes every decision of the log at path to the file to, which it makes or replaces.
func WriteLog(to, path string, trust audit.Trust, o Options) error {
	out, err := Create(to)
	if err != nil {
		return err
	}
	if _, err := LogFile(path, trust, o, out.Write); err != nil {
		out.Abandon()
		return err
	}
	return out.Close()
}

// UnverifiedError returns err, or, where it is Log's *audit.VerifyError about the file at path,
// the *proposal.StopError that explains it: the code is export.unverified, or
// audit.not-readable.
func UnverifiedError(path string, err error) error {
	var fault *audit.VerifyError
	switch {
	case !errors.As(err, &fault):
		return err
	case fault.Code == "read":
		return audit.Unreadable(path, err)
	}
	stop := &proposal.StopError{Code: CodeUnverified, Message: "the log was altered; nothing is exported",
		Hint: "run fumehood show to see the entries before its first fault", Err: fault}
	if fault.Code == "header" {
		stop.Message = "this is not an audit log or a report, or its beginning was altered; nothing is exported"
		stop.Hint = "name the audit.jsonl or the report.json of a run"
	}
	return stop
}

// CodeUnverified is the code of the error for a log that was changed.
const CodeUnverified = "export.unverified"

func unreadableLog(err error) error {
	return &proposal.StopError{Code: "audit.not-readable", Message: "cannot read the log",
		Hint: "name a file, not a pipe", Err: err}
}

func sealState(s audit.Summary) string {
	switch {
	case s.Complete():
		return "sealed"
	case s.State == audit.Sealed:
		return "sealed-untrusted"
	}
	return "unsealed"
}

// A reader reads one run from its log.
type reader struct {
	emitter
	story Story
	steps map[string]int // index in story, by the proposal's id
	began bool
	again map[string]bool // proposals whose first run crashed
	last  time.Time
}

// handleEntry handles one entry. Entries of an unknown kind are ignored.
func (r *reader) handleEntry(e audit.Entry) error {
	if e.Unsigned {
		return nil
	}
	h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
	if err != nil || e.Kind != "run" && !r.began {
		return nil
	}
	if e.Kind == "run" {
		return r.handleRunStart(e, *h.Run)
	}
	before := r.last
	r.last = e.Time
	switch e.Kind {
	case "decision":
		return r.handleDecision(e, h, before)
	case "end":
		r.story.Totals, r.story.Error = h.Totals, h.Error
		return nil
	}
	i, known := r.steps[h.ID]
	if !known {
		return nil
	}
	return r.handleOutcome(e, h, &r.story.Steps[i])
}

// handleRunStart handles the start of the run; a log has exactly one.
func (r *reader) handleRunStart(e audit.Entry, run proposal.Run) error {
	if r.began {
		return &proposal.StopError{Code: "export.runs", Message: "the log contains more than one run",
			Hint: "export the log of each run: fumehood run writes a new one each time"}
	}
	r.began, r.last, r.steps, r.again = true, e.Time, map[string]int{}, map[string]bool{}
	r.story.Run, r.story.Begin = run, e.Time
	r.setRun(run)
	return nil
}

func (r *reader) handleDecision(e audit.Entry, h journal.LogEvent, before time.Time) error {
	if _, twice := r.steps[h.ID]; twice {
		return nil
	}
	r.steps[h.ID] = len(r.story.Steps)
	r.story.Steps = append(r.story.Steps,
		Step{Entry: e.N, Proposal: *h.Proposal, Analysis: *h.Analysis, Decision: *h.Decision,
			Approved: h.Approved, Begun: before, Decided: e.Time})
	return r.exportDecisions(&r.story.Steps[len(r.story.Steps)-1])
}

func (r *reader) handleOutcome(e audit.Entry, h journal.LogEvent, s *Step) error {
	switch e.Kind {
	case "start":
		if s.Started.IsZero() {
			s.Started = e.Time
		}
		s.Ended = e.Time // for a run that was cut off
		r.again[h.ID] = h.Again
	case "events":
		s.Ended = e.Time
		for i, v := range h.Events {
			if err := r.exportEvent(s, e.N, i, v, r.again[h.ID]); err != nil {
				return err
			}
		}
	case "cached":
		s.Ended, s.Result = e.Time, h.Result
	case "result":
		s.Ended, s.Result = e.Time, h.Result
		return r.exportFindings(s, e.Time)
	}
	return nil
}
