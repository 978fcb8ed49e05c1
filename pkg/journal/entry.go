// SPDX-License-Identifier: Apache-2.0

package hood

import "github.com/fumehood/fumehood/pkg/proposal"

// The audit log's entries of one run, in order: "run" (proposal.Run), a "decision"
// for each proposal, then for each one that runs a "start", its "events", as many
// entries as it takes, and a "result", and "end". A log with a start and no result
// was cut off while that command ran. Where a command is run once more, an "attempt"
// and a second "start" stand after the events of the first run, and the events of the
// second are numbered from 0 again.
//
// In a session (Run.Session) a proposal's "decision" comes after the entries of those
// before it, and a "transfer" (proposal.Transfer) stands where a file went in or out.
//
// An "events" entry holds what gVisor's kernel and the gateway saw since the one
// before, in order. It is written when a batch is full or a quarter of a second old,
// and always before the result: so what a killed fumehood leaves lacks at most the last
// moment of the command that was running, and a log with a result lacks nothing.
//
// Whoever makes an allow-list of a log has all that it takes: the proposal's own
// network, phase and grant in "decision"; and of each event with a Flow, Kind, Program,
// and in Flow.Egress Phase, Name, Type, Address, Port, Protocol, SNI, Method, Path and
// Registries, with Flow.Decision's Effect, Observed and Reason.Rule, and Flow.Code.
// What would have been refused has Observed, with Effect allow. Entries whose Flows
// count more lack them one by one: a list of those is not whole.

type decisionOf struct {
	ID       string            `json:"id"`
	Proposal proposal.Proposal `json:"proposal"`
	Analysis proposal.Analysis `json:"analysis"`
	Decision proposal.Decision `json:"decision"`
	Approved bool              `json:"approved,omitempty"` // by the approval in the "run" entry
	// Redacted counts what was replaced in the three before: who decides it again decides
	// about another text.
	Redacted []proposal.Redaction `json:"redacted,omitempty"`
}

type startEntry struct {
	ID       string `json:"id"`
	Decision int64  `json:"decision"` // number of the decision's entry
	Again    bool   `json:"again,omitempty"`
}

type eventsOf struct {
	ID       string           `json:"id"`
	Decision int64            `json:"decision"`
	First    int64            `json:"first"` // number of the first event in the command's run, from 0
	Events   []proposal.Event `json:"events"`
	// More counts file events that came among these and are only counted, because
	// the command had too many.
	More int64 `json:"more,omitempty"`
	// Flows counts those of the network in the same way.
	Flows *flowCounts `json:"flows,omitempty"`
}

func (b eventsOf) isEmpty() bool { return len(b.Events) == 0 && b.More == 0 && b.Flows == nil }

type resultOf struct {
	ID       string          `json:"id"`
	Decision int64           `json:"decision"`
	Result   proposal.Result `json:"result"`
}

type attemptOf struct {
	ID       string           `json:"id"`
	Decision int64            `json:"decision"`
	Attempt  proposal.Attempt `json:"attempt"`
}

type endEntry struct {
	Totals proposal.Totals   `json:"totals"`
	Error  *proposal.Failure `json:"error"`
}

func decisionEntry(r proposal.Record) decisionOf {
	return decisionOf{r.Proposal.ID, r.Proposal, r.Analysis, r.Decision, r.Approval != nil, r.Redacted}
}

// resultEntry leaves out the streams' bytes, which their lengths and digests bind,
// and the lists of events, which stand in their own entries.
func resultEntry(r proposal.Record) resultOf {
	result := *r.Result
	bare(&result.Stdout, &result.Stderr, &result.Observations)
	if result.Retried != nil {
		first := bareAttempt(*result.Retried)
		result.Retried = &first
	}
	return resultOf{r.Proposal.ID, r.Entry, result}
}

func attemptEntry(r proposal.Record, a proposal.Attempt) attemptOf {
	return attemptOf{r.Proposal.ID, r.Entry, bareAttempt(a)}
}

func bareAttempt(a proposal.Attempt) proposal.Attempt {
	bare(&a.Stdout, &a.Stderr, &a.Observations)
	return a
}

// bare leaves out what stands elsewhere.
func bare(stdout, stderr *proposal.Stream, o **proposal.Observations) {
	stdout.Head, stdout.Tail, stderr.Head, stderr.Tail = nil, nil, nil, nil
	if *o != nil {
		short := **o
		short.Execs, short.Notable, short.Network = nil, nil, nil
		*o = &short
	}
}
