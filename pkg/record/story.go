// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strconv"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Story is a run as its spans tell it.
type Story struct {
	Run    proposal.Run
	Begin  time.Time
	End    time.Time
	Log    string // how the log ends, "" of a report
	Steps  []Step // in the plan's order
	Totals *proposal.Totals
	Error  *proposal.Failure
	// Estimated says that only the run's own times are known, and those of its
	// proposals are laid end to end.
	Estimated bool
}

// A Step is one proposal.
type Step struct {
	Entry    int64 // that holds the decision
	Proposal proposal.Proposal
	Analysis proposal.Analysis
	Decision proposal.Decision
	Approved bool
	Result   *proposal.Result // nil when nothing was started
	Begun    time.Time        // that it was looked at
	Decided  time.Time
	Started  time.Time // zero when nothing was
	Ended    time.Time
}

// Done is when s was over.
func (s Step) Done() time.Time {
	if s.Ended.IsZero() {
		return s.Decided
	}
	return s.Ended
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
