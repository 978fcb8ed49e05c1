// SPDX-License-Identifier: Apache-2.0

package hood

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Passing is passing, for the external tests of this package.
type Passing = passing

// passing is the Outlet of tests of other things: everything leaves unchanged.
type passing struct{}

func (passing) Named(proposal.Plan) error                                           { return nil }
func (passing) Text(s string) string                                                { return s }
func (passing) Run(r proposal.Run) proposal.Run                                     { return r }
func (passing) Record(r proposal.Record) proposal.Record                            { return r }
func (passing) Event(e proposal.Event) proposal.Event                               { return e }
func (passing) Failure(f *proposal.Failure) *proposal.Failure                       { return f }
func (passing) Whole(_ context.Context, r proposal.Report) (proposal.Report, error) { return r, nil }
func (passing) Result(_ context.Context, _ string, r proposal.Result) (proposal.Result, error) {
	return r, nil
}
