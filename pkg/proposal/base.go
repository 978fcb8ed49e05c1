// SPDX-License-Identifier: Apache-2.0

package proposal

// A BaseRun is what ran on the base of a pull request, because commands failed on its code: set-up,
// the commands that these need, and the commands themselves, in a sandbox of its own. None of its
// Records counts in Totals.
type BaseRun struct {
	Commit string `json:"commit"` // full id of the merge base
	// Why is why nothing, or not all, could run; "" if everything was tried.
	Why     string   `json:"why,omitempty"`
	WallMS  int64    `json:"wall_ms"` // that it added to the run
	Records []Record `json:"records"` // the ID of each is that of the command, with "~base" after it
}

// The verdicts of a Comparison.
const (
	BaseSame      = "same"      // fails there in the same way
	BasePasses    = "passes"    // succeeds there
	BaseNew       = "new"       // fails there, and these New failures are not among those
	BaseDifferent = "different" // fails there in another way: Why
	BaseUnknown   = "unknown"   // nothing is known: Why
)

// A Comparison is what the base of a pull request shows about a command that failed. Only
// BaseSame changes the Outcome.
type Comparison struct {
	Verdict string `json:"verdict"` // a Base constant
	// New are the names of failing tests that do not fail on the base, at most 50, and Old is
	// how many fail on both. Both are for BaseNew. Untrusted text.
	New     []string `json:"new,omitempty"`
	Omitted int      `json:"omitted,omitempty"` // further ones
	Old     int      `json:"old,omitempty"`
	// Why is in fumehood's own words.
	Why string `json:"why,omitempty"`
	// After is the ID of the needed command that failed on the base, too, if the command was not
	// started for that reason. The Verdict is then BaseSame.
	After string `json:"after,omitempty"`
}

// Unnamed returns c without the names of tests, which only output has.
func (c *Comparison) Unnamed() *Comparison {
	if c == nil || len(c.New) == 0 {
		return c
	}
	short := *c
	short.New, short.Omitted = nil, c.Omitted+len(c.New)
	return &short
}

// FailedBefore reports whether r failed, or was not started, for a reason that the base of the
// pull request has, too.
func (r Record) FailedBefore() bool {
	if r.Base == nil || r.Base.Verdict != BaseSame || r.Result == nil || !r.Runnable() {
		return false
	}
	if r.Base.After != "" {
		return r.Result.Status == NotRun
	}
	return r.Result.EndedByItself()
}
