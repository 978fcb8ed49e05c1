// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math/big"
	"regexp"
	"time"
)

const hintRevision = "revisions are ordered as integers (17) or as RFC 3339 times (2026-11-21T15:00:00Z), the minimum and the bundle's alike"

var integerRE = regexp.MustCompile(`^[0-9]{1,30}$`)

// older refuses a revision below the minimum, and what cannot be ordered.
func older(name, revision, minimum string) error {
	if minimum == "" {
		return nil
	}
	order, ok := compare(revision, minimum)
	switch {
	case revision == "":
		return stop(CodeRevision, "build it with a revision: fumehood policy bundle build --revision", nil, "%s has no revision, and at least %q is asked for", name, minimum)
	case !ok:
		return stop(CodeRevision, hintRevision, nil, "the revision %q of %s and the minimum %q cannot be ordered", revision, name, minimum)
	case order < 0:
		return stop(CodeRevision, "use a newer bundle; an old one may be signed as well and lack a rule", nil, "%s has the revision %q, older than the minimum %q", name, revision, minimum)
	}
	return nil
}

// compare orders two integers, or two times.
func compare(a, b string) (int, bool) {
	if integerRE.MatchString(a) && integerRE.MatchString(b) {
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		return x.Cmp(y), true
	}
	x, err := time.Parse(time.RFC3339Nano, a)
	if err != nil {
		return 0, false
	}
	y, err := time.Parse(time.RFC3339Nano, b)
	return x.Compare(y), err == nil
}

// CheckMinimum refuses a minimum revision that nothing could be compared with.
func CheckMinimum(minimum string) error {
	if _, ok := compare(minimum, minimum); minimum != "" && !ok {
		return stop(CodeRevision, hintRevision, nil, "the minimum revision %q cannot be ordered", minimum)
	}
	return nil
}
