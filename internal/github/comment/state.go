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
	Sections []Section        // of the newest commit that has results, the worst first, one for each source
	Omitted  *OmittedSections // sections of that commit beyond the bounds; nil if there were none
	Earlier  []Result         // of other commits, newest first, the worst of each commit
	Starts   []Start          // runs that were started for this pull request, by run id
	Dropped  Dropped          // starts that are no longer listed
	Notice   AnsweredComment  // the comment that the notice answers
	Review   *Reviewed        // the newest review; nil if there is none
}

// A Section is the newest result of one source.
type Section struct {
	Source
	Result
	Mark  string // one of Marks
	Title string // what follows the name of the source in a heading: ": 1 failed, 2 succeeded"
	// Pending are the plans of the run that wait for approval. Only State.PendingPlans knows which still do.
	Pending []Pending
	// AllPending says that each plan of the run is one of Pending: once they are approved, the run
	// that a person approved has newer results of everything in the section.
	AllPending bool
	// Approved are the digests of the plans that a person approved for this run.
	Approved []string

	text string // what is below the heading, as Markdown
}

// OmittedSections is about the sections that the bounds left out. It stays until there is a newer commit.
type OmittedSections struct {
	Head string `json:"head"`
	Mark string `json:"mark"` // the worst of them
}

// Head is the commit of the sections, "" if there are none.
func (s State) Head() string {
	if len(s.Sections) == 0 {
		return ""
	}
	return s.Sections[0].Head
}

// PendingPlans are the plans that wait for approval: not those that a person has approved since, for a
// run that has its own section.
func (s State) PendingPlans() (list []Pending) {
	for _, section := range s.Sections {
		for _, p := range section.Pending {
			if !s.isApprovedSince(section, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

func (s State) isApprovedSince(of Section, p Pending) bool {
	return slices.ContainsFunc(s.Sections, func(x Section) bool {
		return x.Compare(of.Stamp) > 0 && slices.Contains(x.Approved, p.PlanDigest)
	})
}

// isApproved reports whether everything in a section that waited was approved.
func (s State) isApproved(section Section) bool {
	return len(section.Pending) > 0 &&
		!slices.ContainsFunc(section.Pending, func(p Pending) bool { return !s.isApprovedSince(section, p) })
}

func (s State) findSection(of Source) (Section, bool) {
	i := slices.IndexFunc(s.Sections, func(x Section) bool { return x.Source == of })
	if i < 0 {
		return Section{}, false
	}
	return s.Sections[i], true
}

// newestStamp is the stamp of the newest section.
func (s State) newestStamp() (newest Stamp) {
	for _, section := range s.Sections {
		if newest == (Stamp{}) || section.Stamp.Compare(newest) > 0 {
			newest = section.Stamp
		}
	}
	return newest
}

// A Reviewed is the run of a review.
type Reviewed struct {
	Source
	Stamp
	Done bool `json:"done"` // the review ended normally
}

// Dropped counts the oldest Starts, which are no longer listed.
type Dropped struct {
	Count   int   `json:"count"`
	Through int64 `json:"through"` // the largest run id among them
}

// AnsweredComment identifies the comment that the notice answers.
type AnsweredComment struct {
	Comment int64 `json:"comment"` // its id; 0 for none
	Cleared bool  `json:"cleared"` // the answer was given and then removed
}

// replaces reports whether a replaces other: the answer to the later comment wins, and
// a removed answer stays removed.
func (a AnsweredComment) replaces(other AnsweredComment) bool {
	return a.Comment > other.Comment || a.Comment == other.Comment && a.Cleared && !other.Cleared
}

// CountStarts counts the runs that were started for this pull request.
func (s State) CountStarts() int { return len(s.Starts) + s.Dropped.Count }

func (s State) reviewStamp() Stamp {
	if s.Review == nil {
		return Stamp{}
	}
	return s.Review.Stamp
}

// severityRank orders sections by how bad they are, the worst first.
func (x Section) severityRank() int {
	return rankMark(x.Mark)*len(Conclusions) + rankConclusion(x.Result)
}

func rankMark(mark string) int    { return slices.Index(Marks[:], mark) }
func rankConclusion(r Result) int { return slices.Index(Conclusions[:], r.Conclusion) }
func (x Section) compareSection(y Section) int {
	return cmp.Or(cmp.Compare(x.severityRank(), y.severityRank()), x.compareSource(y.Source))
}
func (o *OmittedSections) isOfHead(head string) bool { return o != nil && o.Head == head }

// joinSections merges the sections of one commit. Of one source the newest is kept, and the worse of
// two of the same attempt: two jobs that do not say how they differ never make each other green. What
// exceeds a pool's bound is left out, the best first. Of a source that was left out nothing is known: an
// older and worse section of it, which a job still has, can then take the place of a better one.
func joinSections(head string, a, b State) ([]Section, *OmittedSections) {
	bySource := map[Source]Section{}
	for _, x := range slices.Concat(a.Sections, b.Sections) {
		had, there := bySource[x.Source]
		if order := x.Compare(had.Stamp); !there || order > 0 || order == 0 && x.severityRank() <= had.severityRank() {
			bySource[x.Source] = x
		}
	}
	var omitted *OmittedSections
	for _, o := range []*OmittedSections{a.Omitted, b.Omitted} {
		if o.isOfHead(head) {
			omitted = omitted.keepWorse(*o)
		}
	}
	var kept []Section
	var n [len(maxSections)]int
	for _, x := range slices.SortedFunc(maps.Values(bySource), Section.compareSection) {
		if n[x.pool()]++; n[x.pool()] > maxSections[x.pool()] {
			omitted = omitted.keepWorse(OmittedSections{Head: head, Mark: x.Mark})
			continue
		}
		kept = append(kept, x)
	}
	return kept, omitted
}

func (o *OmittedSections) keepWorse(other OmittedSections) *OmittedSections {
	if o != nil && rankMark(o.Mark) <= rankMark(other.Mark) {
		return o
	}
	return &other
}

// joinEarlier returns the worst result of each commit other than the present one, the newest first.
func joinEarlier(present string, lists ...[]Result) []Result {
	worst := map[string]Result{}
	for _, r := range slices.Concat(lists...) {
		had, there := worst[r.Head]
		if order := cmp.Or(rankConclusion(had)-rankConclusion(r), r.Compare(had.Stamp)); r.Head != present &&
			(!there || order > 0) {
			worst[r.Head] = r
		}
	}
	all := slices.SortedFunc(maps.Values(worst), func(a, b Result) int {
		return cmp.Or(b.Compare(a.Stamp), cmp.Compare(a.Head, b.Head))
	})
	return all[:min(len(all), maxEarlier)]
}

func resultsOf(sections []Section) (list []Result) {
	for _, x := range sections {
		list = append(list, x.Result)
	}
	return list
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
