// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Stamp says which run results speak of.
type Stamp struct {
	Head    string `json:"head"` // the commit that ran, full and lower-case
	RunID   int64  `json:"run"`  // GitHub's id of the workflow run that ran it
	Attempt int    `json:"attempt"`
}

// beats reports whether s stands and other goes, head being the pull request's
// present head. Of equal ones neither beats the other, and a zero Stamp beats none.
func (s Stamp) beats(other Stamp, head string) bool {
	if none := (Stamp{}); s == none || other == none {
		return s != none
	}
	if mine, theirs := s.Head == head, other.Head == head; mine != theirs {
		return mine
	}
	return s.compare(other) > 0
}

// compare orders runs as they were started.
func (s Stamp) compare(other Stamp) int {
	return cmp.Or(cmp.Compare(s.RunID, other.RunID), cmp.Compare(s.Attempt, other.Attempt))
}

// A Result is a run in a few words: what stays of it when another takes its place.
type Result struct {
	Stamp
	Conclusion string          // one of Conclusions
	Totals     proposal.Totals // each at most 100,000
}

// Conclusions are the words that a Result may say.
var Conclusions = [...]string{"success", "failure", "denied", "asked", "error", "cancelled", "skipped"}

// A Pending is a plan that waits for a person's approval, with where it can be had.
type Pending struct {
	Name       string `json:"name"`        // of the plan; "" for the only one
	PlanDigest string `json:"plan"`        // "sha256:" and hex
	Policy     string `json:"policy"`      // likewise
	RunID      int64  `json:"run"`         // the run whose artifact holds the plan
	Artifact   string `json:"artifact"`    // its name
	ArtifactID int64  `json:"artifact_id"` // 0 when not known
}

// A Start is one run that was started at somebody's wish.
type Start struct {
	RunID int64
	Day   int // since 1970-01-01, UTC
}

// DayOf returns the Start.Day of a moment.
func DayOf(t time.Time) int { return int(t.UTC().Unix() / (24 * 60 * 60)) }
