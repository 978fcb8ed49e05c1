// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Budget is how many runs may be started by comments. The zero Budget allows none.
type Budget struct {
	PR  int // on one pull request, ever
	Day int // in the repository, between two midnights UTC
}

// DefaultBudget is for a workflow that names none.
var DefaultBudget = Budget{PR: 20, Day: 100}

// A Start is one run that was started before, on whichever pull request.
type Start struct {
	PR   int       `json:"pr"`
	Time time.Time `json:"time"`
}

// Count counts what was started before against b, for the trigger of a command on
// pull request pr. A start of today or later counts for the day: a clock that runs
// ahead must not make room.
//
// The caller brings every start of the pull request and of the day. One that it does
// not know is not counted.
func (b Budget) Count(before []Start, pr int, now time.Time) proposal.TriggerRuns {
	counted := proposal.TriggerRuns{MaxPR: b.PR, MaxDay: b.Day}
	now = now.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	for _, s := range before {
		if s.PR == pr {
			counted.PR++
		}
		if !s.Time.Before(midnight) {
			counted.Day++
		}
	}
	return counted
}
