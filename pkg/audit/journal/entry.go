// SPDX-License-Identifier: Apache-2.0

// Package journal is the vocabulary of a run's audit log: the entries that a run writes,
// and how a reader decodes them. Package audit writes and verifies the file itself.
//
// The entries of a run are, in order: "run" (proposal.Run); a "decision" for each
// proposal; for each proposal that runs a "start", any number of "events" and a
// "result"; a "transfer" (proposal.Transfer) with the digest of the report's Differences, if
// it has any; if commands failed and were run on the base of the pull request, a "base" and then
// decisions, starts, events and results as before, of proposals with other ids; and "end". A log with a start
// and no result was cut off while that command ran. Where a command is run a second time, an "attempt" and a
// second "start" follow the events of the first run, and the events of the second run are numbered from 0 again.
//
// Where the result of an earlier run is used, a "cached" entry is in place of the start, the
// events and the result. It has the proof that the log of that run has the result. A command of
// set-up that a layer replaces has a "result" without a "start".
//
// In a session (Run.Session) a proposal's "decision" comes after the entries of the
// proposals before it, and a "transfer" (proposal.Transfer) is written where a file went
// in or out, or the session was paused, resumed or saved. The "run" of a session that
// began with a snapshot names the checkpoint of the other session's log (Run.From).
//
// The "events" and the "result" of a command in the background, which its "start" says, may
// come at any later place before "end", between the entries of others.
//
// An "events" entry holds what gVisor's kernel and the gateway saw since the entry
// before it, in order. It is written when a batch is full or a quarter of a second old,
// and always before the result. So the log of a killed fumehood lacks at most the last
// moment of the command that was running, and a log with a result lacks nothing.
//
// Nothing runs before its decision and its start are on disk (Append). Events and results
// need not be on disk before the next thing happens (Write): after a crash of the host, a log
// may end with the start of a command that had just ended.
//
// # Allow-lists
//
// A log holds all that an allow-list is made from. "decision" has the proposal's own
// network, phase and grant. Each event with a Flow has Kind and Program; in Flow.Egress
// Phase, Name, Type, Address, Port, Protocol, SNI, Method, Path and Registries; in
// Flow.Decision Effect, Observed and Reason.Rule; and Flow.Code. An event that would have
// been refused has Observed, with Effect allow. An entry with Flows counts further events
// without listing them; an allow-list made from such a log is incomplete.
//
// The package does not verify anything: what it decodes may come from an untrusted file.
package journal

import "github.com/fumehood/fumehood/pkg/proposal"

// A Log is the audit log of a run: pkg/audit's Log, or a test's.
type Log interface {
	// Append returns when the entry is on disk, with its number.
	Append(kind string, v any) (int64, error)
	// Write returns when the entry is in the file, with its number: the end of this process
	// does not lose it, a crash of the host soon after can. The next Append brings it to
	// disk, too.
	Write(kind string, v any) (int64, error)
}

// An Entry is one entry of an audit log as a reader of it has it.
type Entry struct {
	Kind string
	Body []byte // JSON
}

// A Decision is a "decision" entry.
type Decision struct {
	ID       string            `json:"id"`
	Proposal proposal.Proposal `json:"proposal"`
	Analysis proposal.Analysis `json:"analysis"`
	Decision proposal.Decision `json:"decision"`
	Approved bool              `json:"approved,omitempty"` // by the approval in the "run" entry, or by Client
	// Client is the session's client's approval; nil if there is none.
	Client *proposal.ClientApproval `json:"client_approval,omitempty"`
	// Redacted counts the secrets that were replaced in Proposal, Analysis and Decision. If
	// there are any, deciding the proposal again is deciding about another text.
	Redacted []proposal.Redaction `json:"redacted,omitempty"`
}

// A Start is a "start" entry.
type Start struct {
	ID       string `json:"id"`
	Decision int64  `json:"decision"` // number of the decision's entry
	Again    bool   `json:"again,omitempty"`
	// Background says that other entries may come between those of this command.
	Background bool `json:"background,omitempty"`
}

// Events is an "events" entry.
type Events struct {
	ID       string           `json:"id"`
	Decision int64            `json:"decision"`
	First    int64            `json:"first"` // number of the first event in the command's run, from 0
	Events   []proposal.Event `json:"events"`
	// More counts file events that came among these and are only counted, because
	// the command had too many.
	More int64 `json:"more,omitempty"`
	// Flows counts those of the network in the same way.
	Flows *FlowCounts `json:"flows,omitempty"`
}

// IsEmpty reports whether there is nothing to write.
func (e Events) IsEmpty() bool { return len(e.Events) == 0 && e.More == 0 && e.Flows == nil }

// A Result is a "result" entry.
type Result struct {
	ID       string          `json:"id"`
	Decision int64           `json:"decision"`
	Result   proposal.Result `json:"result"`
}

// A Cached is a "cached" entry: the result of an earlier run that was used, so that the command
// did not run. Result.CacheKey and Result.Cached are set.
type Cached Result

// An Attempt is an "attempt" entry: the first run of a command that is run again.
type Attempt struct {
	ID       string           `json:"id"`
	Decision int64            `json:"decision"`
	Attempt  proposal.Attempt `json:"attempt"`
}

// A Base is a "base" entry: what follows ran on the base of the pull request.
type Base struct {
	Commit string `json:"commit"` // full id
}

// An End is the "end" entry.
type End struct {
	Totals proposal.Totals   `json:"totals"`
	Error  *proposal.Failure `json:"error"`
}

// NewDecision returns the entry of what was decided about r.
func NewDecision(r proposal.Record) Decision {
	return Decision{r.Proposal.ID, r.Proposal, r.Analysis, r.Decision, r.Approved(), r.ClientApproval, r.Redacted}
}

// NewStart returns the entry of a start of r: again for the second run.
func NewStart(r proposal.Record, again bool) Start {
	return Start{ID: r.Proposal.ID, Decision: r.Entry, Again: again, Background: r.Background}
}

// NewResult returns the entry of r's Result, which must not be nil. It leaves out the
// streams' bytes, which are bound by their lengths and digests, and the lists of events,
// which are in separate entries.
func NewResult(r proposal.Record) Result {
	result := *r.Result
	stripStreams(&result.Stdout, &result.Stderr, &result.Observations)
	result.TestResults.Head, result.TestResults.Tail = nil, nil
	result.Displays = proposal.Digests(result.Displays)
	if result.Retried != nil {
		first := stripAttempt(*result.Retried)
		result.Retried = &first
	}
	return Result{r.Proposal.ID, r.Entry, result}
}

// NewCached returns the entry of r's Result, which an earlier run had.
func NewCached(r proposal.Record) Cached { return Cached(NewResult(r)) }

// NewAttempt returns the entry of a, the first run of r. It leaves out what NewResult does.
func NewAttempt(r proposal.Record, a proposal.Attempt) Attempt {
	return Attempt{r.Proposal.ID, r.Entry, stripAttempt(a)}
}

func stripAttempt(a proposal.Attempt) proposal.Attempt {
	stripStreams(&a.Stdout, &a.Stderr, &a.Observations)
	return a
}

// stripStreams removes what other entries hold or a digest binds.
func stripStreams(stdout, stderr *proposal.Stream, o **proposal.Observations) {
	stdout.Head, stdout.Tail, stderr.Head, stderr.Tail = nil, nil, nil, nil
	if *o != nil {
		short := **o
		short.Execs, short.Notable, short.Network = nil, nil, nil
		*o = &short
	}
}
