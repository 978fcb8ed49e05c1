// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/internal/text"
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
	if s.Result != nil {
		if err := s.Result.check(); err != nil {
			return err
		}
	}
	if s.Review != nil {
		if err := s.Review.check(); err != nil {
			return err
		}
	}
	if len(s.Pending) > MaxPending || len(s.Earlier) > maxEarlier || len(s.Starts) > maxStarts {
		return fmt.Errorf("%w: too many entries", errMalformedState)
	}
	for _, p := range s.Pending {
		if err := p.check(); err != nil {
			return err
		}
	}
	for _, r := range s.Earlier {
		if err := r.check(); err != nil {
			return err
		}
	}
	if !id(s.Notice.Comment) && s.Notice != (Answered{}) {
		return fmt.Errorf("%w: notice", errMalformedState)
	}
	return s.checkStarts()
}

func (s State) checkStarts() error {
	if s.Dropped != (Dropped{}) && (!count(s.Dropped.Count) || !id(s.Dropped.Through)) {
		return fmt.Errorf("%w: dropped", errMalformedState)
	}
	last := s.Dropped.Through
	for _, start := range s.Starts {
		if !id(start.RunID) || start.RunID <= last || start.Day < 0 || start.Day > maxDay {
			return fmt.Errorf("%w: start of run %d", errMalformedState, start.RunID)
		}
		last = start.RunID
	}
	return nil
}

func (s Stamp) check() error {
	if !commitName.MatchString(s.Head) || !id(s.RunID) || s.Attempt < 1 || s.Attempt > maxCount {
		return fmt.Errorf("invalid stamp %+q: want a full commit id, a run id and an attempt", fmt.Sprint(s))
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
		if !count(n) {
			return fmt.Errorf("invalid total %d", n)
		}
	}
	return nil
}

func (p Pending) check() error {
	switch {
	case !digestName.MatchString(p.PlanDigest) || !digestName.MatchString(p.Policy):
		return fmt.Errorf("invalid digest of a waiting plan")
	case !id(p.RunID) || p.ArtifactID != 0 && !id(p.ArtifactID):
		return fmt.Errorf("invalid run or artifact of a waiting plan")
	case !name(p.Name) || !name(p.Artifact) || !name(p.Nonce):
		return fmt.Errorf("invalid name of a plan or artifact, or nonce: want at most %d printable characters", maxName)
	}
	return nil
}

func id(n int64) bool  { return n > 0 && n <= maxID }
func count(n int) bool { return n >= 0 && n <= maxCount }

func name(s string) bool {
	return utf8.ValidString(s) && text.Units(s) <= maxName &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || text.Hidden(r) })
}
