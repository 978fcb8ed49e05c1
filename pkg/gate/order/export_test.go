// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"

	"github.com/fumehood/fumehood/pkg/journal"
	"github.com/fumehood/fumehood/pkg/observe"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Passing and Observing are for the tests outside this package.
type Passing = passing

var Observing = observing

// observing returns an Observer that writes to log, and for which policy has the same
// findings about every event of note.
func observing(log journal.Log, found ...proposal.Finding) *observe.Observer {
	o, err := observe.New(log, func(context.Context, proposal.Event) ([]proposal.Finding, error) { return found, nil })
	if err != nil {
		panic(err)
	}
	return o
}

// passing is the Redactor of tests of something else: everything leaves as it is.
type passing struct{}

func (passing) Named(proposal.Plan) error                     { return nil }
func (passing) Text(s string) string                          { return s }
func (passing) Run(r proposal.Run) proposal.Run               { return r }
func (passing) Record(r proposal.Record) proposal.Record      { return r }
func (passing) Event(e proposal.Event) proposal.Event         { return e }
func (passing) Failure(f *proposal.Failure) *proposal.Failure { return f }
func (passing) Diff(_ context.Context, name string, d proposal.Diff, _ proposal.DiffBounds) (proposal.Diff, error) {
	d.Patch.File = name + ".diff"
	return d, nil
}
func (passing) Live(_ context.Context, _ string, to func(proposal.Chunk)) (func(proposal.Chunk), func()) {
	return to, func() {}
}
func (passing) Whole(_ context.Context, r proposal.Report) (proposal.Report, error) { return r, nil }
func (passing) Result(_ context.Context, _ string, r proposal.Result) (proposal.Result, error) {
	return r, nil
}

// afterRun is a command in the background of a test's Runner: it has run already.
type afterRun struct {
	result proposal.Result
	err    error
}

func (p afterRun) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
func (p afterRun) Result() (proposal.Result, error) { return p.result, p.err }
func (p afterRun) Interrupt() error                 { return nil }
func (p afterRun) Kill(string)                      {}
