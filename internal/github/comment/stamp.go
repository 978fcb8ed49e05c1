// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Stamp identifies the run of some results.
type Stamp struct {
	Head    string `json:"head"` // the commit that ran, full and lower-case
	RunID   int64  `json:"run"`  // GitHub's id of the workflow run
	Attempt int    `json:"attempt"`
	// Started is when the run was started, in seconds since 1970 by GitHub's clock. Ids and numbers of
	// runs do not say which of two is newer: an older run can be run again.
	Started int64 `json:"started"`
	// Reported is when the job of another workflow that reports the run was started, like Started; 0
	// for a run that reports itself. That job can be run again, for the same attempt.
	Reported int64 `json:"reported,omitempty"`
}

// replaces reports whether s replaces other; head is the pull request's current head.
// Neither of two equal stamps beats the other, and a zero Stamp beats none.
func (s Stamp) replaces(other Stamp, head string) bool {
	if none := (Stamp{}); s == none || other == none {
		return s != none
	}
	if mine, theirs := s.Head == head, other.Head == head; mine != theirs {
		return mine
	}
	return s.Compare(other) > 0
}

// Compare orders runs by when they were started. Attempts of one run are ordered by number, and what
// one attempt reports is equally new whenever it does, except for what another workflow reports of it.
func (s Stamp) Compare(other Stamp) int {
	if s.RunID == other.RunID {
		return cmp.Or(cmp.Compare(s.Attempt, other.Attempt), cmp.Compare(s.Reported, other.Reported))
	}
	return cmp.Or(cmp.Compare(s.Started, other.Started), cmp.Compare(s.RunID, other.RunID))
}

// A Result is a summary of a run; it is kept when the results are replaced.
type Result struct {
	Stamp
	Conclusion string          // one of Conclusions
	Totals     proposal.Totals // each at most 100,000
}

// Conclusions are the valid values of Result.Conclusion, the worst first.
var Conclusions = [...]string{"error", "failure", "denied", "cancelled", "asked", "neutral", "skipped", "success"}

// Marks are the valid values of Section.Mark, the worst first. "" is for results whose outcome is not
// known: it is never a success.
var Marks = [...]string{"🛑", "❌", "⛔", "⏱️", "🚫", "✋", "⚠️", "", "➖", "✅"}

// A Pending is a plan that waits for a person's approval, and where to get it.
type Pending struct {
	Name       string `json:"name"`        // of the plan; "" for the only one
	PlanDigest string `json:"plan"`        // "sha256:" and hex
	Policy     string `json:"policy"`      // likewise
	RunID      int64  `json:"run"`         // the run that uploaded the artifact with the plan
	Artifact   string `json:"artifact"`    // its name
	ArtifactID int64  `json:"artifact_id"` // 0 when not known
	// Nonce is random, and the same for all that are shown together: see bot.Asked. Without it
	// the plan cannot be approved.
	Nonce string `json:"nonce,omitempty"`
}

// A Start is one run that was started at a user's request.
type Start struct {
	RunID int64
	Day   int // since 1970-01-01, UTC
}

// DayOf returns the Start.Day of a time.
func DayOf(t time.Time) int { return int(t.UTC().Unix() / (24 * 60 * 60)) }
