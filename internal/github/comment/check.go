// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// The bounds of a State's numbers and texts.
const (
	maxID    = 1<<53 - 1 // integers that all JSON readers represent exactly
	maxCount = 100_000
	maxDay   = 100_000 // in the year 2243
	maxName  = 64      // units
)

var (
	commitName = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	digestName = pattern.New(`^sha256:[0-9a-f]{64}$`)
)

// check returns an error for the first value of s that is out of bounds.
func (s State) check() error {
	if err := s.checkSections(); err != nil {
		return err
	}
	if s.Review != nil {
		if err := errors.Join(s.Review.Source.check(), s.Review.Stamp.check()); err != nil {
			return err
		}
	}
	if len(s.Earlier) > maxEarlier || len(s.Starts) > maxStarts {
		return fmt.Errorf("%w: too many entries", errMalformedState)
	}
	for _, r := range s.Earlier {
		if err := r.check(); err != nil {
			return err
		}
	}
	if !isValidID(s.Notice.Comment) && s.Notice != (AnsweredComment{}) {
		return fmt.Errorf("%w: notice", errMalformedState)
	}
	return s.checkStarts()
}

// checkSections refuses what joinSections does not return.
func (s State) checkSections() error {
	pending := 0
	for _, x := range s.Sections {
		if err := x.check(); err != nil {
			return err
		}
		pending += len(x.Pending)
	}
	sections, omitted := joinSections(s.Head(), State{Sections: s.Sections, Omitted: s.Omitted}, State{})
	same := func(x, y Section) bool { return x.Source == y.Source && x.Stamp == y.Stamp }
	switch {
	case !slices.EqualFunc(sections, s.Sections, same) || pending > MaxPending,
		slices.ContainsFunc(s.Sections, func(x Section) bool { return x.Head != s.Head() }):
		return fmt.Errorf("%w: sections", errMalformedState)
	case s.Omitted != nil && (omitted == nil || *omitted != *s.Omitted || rankMark(s.Omitted.Mark) < 0):
		return fmt.Errorf("%w: omitted sections", errMalformedState)
	}
	return nil
}

// titleText is plain: nothing in a title can be Markdown, HTML or a mention.
var titleText = pattern.New(`^[:, ][A-Za-z0-9 .,:;()'/+%-]{0,159}$`)

func (x Section) check() error {
	if err := errors.Join(x.Source.check(), x.Result.check()); err != nil {
		return err
	}
	if rankMark(x.Mark) < 0 || !titleText.MatchString(x.Title) ||
		x.Mark == "✅" && (x.SelfReported || x.Conclusion != "success") {
		return fmt.Errorf("invalid heading %q %q of a section that ended with %s", x.Mark, x.Title, x.Conclusion)
	}
	for _, p := range x.Pending {
		if err := p.check(); err != nil {
			return err
		}
	}
	if len(x.Approved) > MaxPending ||
		slices.ContainsFunc(x.Approved, func(d string) bool { return !digestName.MatchString(d) }) {
		return fmt.Errorf("invalid digest of an approved plan")
	}
	return nil
}

func (s State) checkStarts() error {
	if s.Dropped != (Dropped{}) && (!isValidCount(s.Dropped.Count) || !isValidID(s.Dropped.Through)) {
		return fmt.Errorf("%w: dropped", errMalformedState)
	}
	last := s.Dropped.Through
	for _, start := range s.Starts {
		if !isValidID(start.RunID) || start.RunID <= last || start.Day < 0 || start.Day > maxDay {
			return fmt.Errorf("%w: start of run %d", errMalformedState, start.RunID)
		}
		last = start.RunID
	}
	return nil
}

// isTime reports whether seconds since 1970 are a time that a State can hold.
func isTime(seconds int64) bool { return seconds >= 0 && seconds <= maxDay*24*60*60 }

func (s Stamp) check() error {
	if !commitName.MatchString(s.Head) || !isValidID(s.RunID) || s.Attempt < 1 || s.Attempt > maxCount ||
		!isTime(s.Started) || !isTime(s.Reported) {
		return fmt.Errorf("invalid stamp %+q: want a full commit id, a run id, an attempt and a time", fmt.Sprint(s))
	}
	return nil
}

func (r Result) check() error {
	if err := r.Stamp.check(); err != nil {
		return err
	}
	if !slices.Contains(Conclusions[:], r.Conclusion) {
		return fmt.Errorf("invalid conclusion %q", r.Conclusion)
	}
	for _, n := range encodeResult(r).Totals {
		if !isValidCount(n) {
			return fmt.Errorf("invalid total %d", n)
		}
	}
	return nil
}

func (p Pending) check() error {
	switch {
	case !digestName.MatchString(p.PlanDigest) || !digestName.MatchString(p.Policy):
		return fmt.Errorf("invalid digest of a waiting plan")
	case !isValidID(p.RunID) || p.ArtifactID != 0 && !isValidID(p.ArtifactID):
		return fmt.Errorf("invalid run or artifact of a waiting plan")
	case !isValidName(p.Name) || !isValidName(p.Artifact) || !isValidName(p.Nonce):
		return fmt.Errorf("invalid name of a plan or artifact, or nonce: want at most %d printable characters", maxName)
	}
	return nil
}

func isValidID(n int64) bool  { return n > 0 && n <= maxID }
func isValidCount(n int) bool { return n >= 0 && n <= maxCount }

func isValidName(s string) bool {
	return utf8.ValidString(s) && text.CountUnits(s) <= maxName &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || text.IsHidden(r) })
}
