// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Redactor redacts everything before it is logged, shown or kept: pkg/redact's
// Redactor, or a test's. Its results have markers in place of secrets and count them.
// Its arguments stay unchanged, so decisions and executions use the original.
type Redactor interface {
	// Named refuses a plan whose IDs would have to be redacted.
	Named(proposal.Plan) error
	Run(proposal.Run) proposal.Run
	Record(proposal.Record) proposal.Record
	Event(proposal.Event) proposal.Event
	Failure(*proposal.Failure) *proposal.Failure
	Text(string) string
	// Result redacts what a command printed and left, as policy decides. With an
	// error, which ends the run, the Result contains none of it.
	Result(ctx context.Context, id string, r proposal.Result) (proposal.Result, error)
	// Diff redacts and compares the files of d, within bounds. Its Patch is among the artifacts.
	// With an error, which ends the run, the Diff is empty.
	Diff(ctx context.Context, name string, d proposal.Diff, bounds proposal.DiffBounds) (proposal.Diff, error)
	// Live returns a function that takes what the command id prints while it runs, and never
	// blocks. It passes to to what is redacted. end is called when the command has ended, and
	// returns when to is not called any more.
	Live(ctx context.Context, id string, to func(proposal.Chunk)) (take func(proposal.Chunk), end func())
	// Whole redacts the report, as policy decides.
	Whole(context.Context, proposal.Report) (proposal.Report, error)
}

type outputKey struct{}

// WithOutput returns a context for Session.Do and its variants. The command that runs calls f
// with what it prints, redacted, one Chunk at a time: see package redact for what that
// promises, and when it falls behind. f is not called after Do has returned. If the command
// is run again because a runtime crashed, what the second run prints follows.
func WithOutput(ctx context.Context, f func(proposal.Chunk)) context.Context {
	return context.WithValue(ctx, outputKey{}, f)
}

// OutputOf returns the function that WithOutput was called with, or nil.
func OutputOf(ctx context.Context) func(proposal.Chunk) {
	f, _ := ctx.Value(outputKey{}).(func(proposal.Chunk))
	return f
}

// live makes x pass on what it prints to ctx's receiver. end must be called after x has ended.
func (h *Hood) live(ctx context.Context, x *proposal.Execution) (end func()) {
	f := OutputOf(ctx)
	if f == nil {
		return func() {}
	}
	x.Output, end = h.p.Redactor.Live(ctx, x.ID, f)
	return end
}

// redacted returns the records redacted. Executions use the originals.
func (h *Hood) redacted(records []proposal.Record) []proposal.Record {
	redacted := make([]proposal.Record, len(records))
	for i, r := range records {
		redacted[i] = h.p.Redactor.Record(r)
	}
	return redacted
}

// released redacts a result. If that fails, its outcome counts as unknown.
func (h *Hood) released(ctx context.Context, id string, result proposal.Result) (proposal.Result, error) {
	result, err := h.p.Redactor.Result(ctx, id, result)
	if err != nil {
		result.Status, result.Detail = proposal.SandboxFailed, "its output could not be searched for secrets"
	}
	return result, err
}

// ruleSecret is the rule of the Finding that something was redacted.
const ruleSecret = "output.secret"

// noted adds a finding to a command's observations if secrets were found in its
// output. It does not cause a second run.
func noted(r *proposal.Record) {
	found := r.Result.Redactions()
	if n, _ := proposal.CountRedactions(found); n == 0 || r.Result.Observations == nil {
		return
	}
	message := "part of its output or files was replaced or withheld:"
	for i, f := range found {
		if i > 0 {
			message += ","
		}
		message += fmt.Sprintf(" %s (%d)", f.Rule, f.Count)
	}
	o := *r.Result.Observations
	o.Findings = append(o.Findings[:len(o.Findings):len(o.Findings)], proposal.Finding{Rule: ruleSecret, Message: message,
		Event: proposal.Event{Command: r.Proposal.ID, Kind: "output"}})
	r.Result.Observations = &o
}
