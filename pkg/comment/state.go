// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"maps"
	"slices"
)

// The limits of a State.
const (
	MaxPending = 16
	maxEarlier = 5
	maxStarts  = 40
)

// A State is what the comment stores for the next job. Others can change it: see
// the package comment.
type State struct {
	Result  *Result   // the run of the results section; nil if nothing has run
	Pending []Pending // plans of that run that wait for approval
	Earlier []Result  // of other commits, newest first, one per commit
	Starts  []Start   // runs that were started for this pull request, by run id
	Dropped Dropped   // starts that are no longer listed
	Notice  Answered  // the comment that the notice answers
	Review  *Reviewed // the run of the review section; nil if there is none
}

// A Reviewed is the run of a review.
type Reviewed struct {
	Stamp
	Done bool `json:"done"` // the review ended normally
}

// Dropped counts the oldest Starts, which are no longer listed.
type Dropped struct {
	Count   int   `json:"count"`
	Through int64 `json:"through"` // the largest run id among them
}

// Answered identifies the comment that the notice answers.
type Answered struct {
	Comment int64 `json:"comment"` // its id; 0 for none
	Cleared bool  `json:"cleared"` // the answer was given and then removed
}

// beats reports whether a replaces other: the answer to the later comment wins, and
// a removed answer stays removed.
func (a Answered) beats(other Answered) bool {
	return a.Comment > other.Comment || a.Comment == other.Comment && a.Cleared && !other.Cleared
}

// Started counts the runs that were started for this pull request.
func (s State) Started() int { return len(s.Starts) + s.Dropped.Count }

// StartedOn counts the listed runs of one day.
func (s State) StartedOn(day int) int {
	n := 0
	for _, start := range s.Starts {
		if start.Day == day {
			n++
		}
	}
	return n
}

func (s State) stamp() Stamp {
	if s.Result == nil {
		return Stamp{}
	}
	return s.Result.Stamp
}

func (s State) reviewed() Stamp {
	if s.Review == nil {
		return Stamp{}
	}
	return s.Review.Stamp
}

// joinEarlier returns the newest results of commits other than present's.
func joinEarlier(present Stamp, lists ...[]Result) []Result {
	newest := map[string]Result{}
	for _, r := range slices.Concat(lists...) {
		if had, ok := newest[r.Head]; r.Head != present.Head && (!ok || r.compare(had.Stamp) > 0) {
			newest[r.Head] = r
		}
	}
	all := slices.SortedFunc(maps.Values(newest), func(a, b Result) int {
		return cmp.Or(b.compare(a.Stamp), cmp.Compare(a.Head, b.Head))
	})
	return all[:min(len(all), maxEarlier)]
}

// joinStarts merges the starts of a and b. If there are too many, the oldest are dropped.
func joinStarts(a, b State) ([]Start, Dropped) {
	dropped := a.Dropped
	if b.Dropped.Through > dropped.Through || b.Dropped.Through == dropped.Through && b.Dropped.Count > dropped.Count {
		dropped = b.Dropped
	}
	days := map[int64]int{}
	for _, s := range slices.Concat(a.Starts, b.Starts) {
		if had, ok := days[s.RunID]; s.RunID > dropped.Through && (!ok || s.Day < had) {
			days[s.RunID] = s.Day
		}
	}
	var starts []Start
	for _, id := range slices.Sorted(maps.Keys(days)) {
		starts = append(starts, Start{RunID: id, Day: days[id]})
	}
	for ; len(starts) > maxStarts; starts = starts[1:] {
		dropped = Dropped{Count: dropped.Count + 1, Through: starts[0].RunID}
	}
	return starts, dropped
}
