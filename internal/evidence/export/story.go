// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strconv"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Story is a run, as needed for its spans.
type Story struct {
	Run    proposal.Run
	Begin  time.Time
	End    time.Time
	Log    string // how the log ends; "" for a report
	Steps  []Step // in the plan's order
	Totals *proposal.Totals
	Error  *proposal.Failure
	// Estimated says that only the run's own times are known; its proposals are
	// assumed to follow one another.
	Estimated bool
}

// A Step is one proposal.
type Step struct {
	Entry    int64 // the log entry with the decision
	Proposal proposal.Proposal
	Analysis proposal.Analysis
	Decision proposal.Decision
	Approved bool
	Result   *proposal.Result // nil if nothing was started
	Begun    time.Time        // when it was first considered
	Decided  time.Time
	Started  time.Time // zero if nothing was started
	Ended    time.Time
}

// Done returns the time at which s ended.
func (s Step) Done() time.Time {
	if s.Ended.IsZero() {
		return s.Decided
	}
	return s.Ended
}

func formatNumber(n int64) string { return strconv.FormatInt(n, 10) }
