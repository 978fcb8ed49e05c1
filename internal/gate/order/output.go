// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

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

type inputKey struct{}

// WithInput returns a context for Session.Start: the command reads input instead of its Stdin, and
// Start closes input.
func WithInput(ctx context.Context, input *os.File) context.Context {
	return context.WithValue(ctx, inputKey{}, input)
}

// inputOf returns the file that WithInput was called with, or nil.
func inputOf(ctx context.Context) *os.File {
	input, _ := ctx.Value(inputKey{}).(*os.File)
	return input
}

// passOutput makes x pass on what it prints to ctx's receiver. end must be called after x has ended.
func (s *Session) passOutput(ctx context.Context, x *sandbox.Execution) (end func()) {
	f := OutputOf(ctx)
	if f == nil {
		return func() {}
	}
	x.Output, end = s.stages.Redactor.Live(ctx, x.ID, f)
	return end
}

// redactRecords returns the records redacted. Executions use the originals.
func (s *Session) redactRecords(records []proposal.Record) []proposal.Record {
	redacted := make([]proposal.Record, len(records))
	for i, r := range records {
		redacted[i] = s.stages.Redactor.Record(r)
	}
	return redacted
}

// redactResult redacts a result. If that fails, its outcome counts as unknown.
func (s *Session) redactResult(ctx context.Context, id string, result proposal.Result) (proposal.Result, error) {
	result, err := s.stages.Redactor.Result(ctx, id, result)
	if err != nil {
		result.Status, result.Detail = proposal.SandboxFailed, "its output could not be searched for secrets"
	}
	return result, err
}

// ruleSecret is the rule of the Finding that something was redacted.
const ruleSecret = "output.secret"

// addSecretFinding adds a finding to a command's observations if secrets were found in its
// output. It does not cause a second run.
func addSecretFinding(r *proposal.Record) {
	found := redaction.FindsIn(*r.Result)
	if n, _ := redaction.CountFinds(found); n == 0 || r.Result.Observations == nil {
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
	o.Findings = append(o.Findings[:len(o.Findings):len(o.Findings)],
		proposal.Finding{Rule: ruleSecret, Message: message,
			Event: proposal.Event{Command: r.Proposal.ID, Kind: "output"}})
	r.Result.Observations = &o
}
