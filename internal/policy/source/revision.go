// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math/big"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

const hintRevision = "use integers (17) or RFC 3339 times (2026-11-21T15:00:00Z) for both the minimum and the bundle's revision"

var integerRE = pattern.New(`^[0-9]{1,30}$`)

// refuseOlder refuses a revision below the minimum, and revisions that cannot be compared.
func refuseOlder(name, revision, minimum string) error {
	if minimum == "" {
		return nil
	}
	order, ok := compareRevisions(revision, minimum)
	switch {
	case revision == "":
		return stopError(CodeRevision, "build it with a revision: fumehood policy bundle build --revision", nil,
			"%s has no revision, and at least %q is required", name, minimum)
	case !ok:
		return stopError(CodeRevision, hintRevision, nil, "cannot compare the revision %q of %s with the minimum %q",
			revision, name, minimum)
	case order < 0:
		return stopError(CodeRevision, "use a newer bundle: an old one may be signed, too, but lack a rule", nil,
			"%s has the revision %q, older than the minimum %q", name, revision, minimum)
	}
	return nil
}

// compareRevisions compares two integers, or two times.
func compareRevisions(a, b string) (int, bool) {
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

// CheckMinimum refuses a minimum revision that cannot be compared with any.
func CheckMinimum(minimum string) error {
	if _, ok := compareRevisions(minimum, minimum); minimum != "" && !ok {
		return stopError(CodeRevision, hintRevision, nil, "invalid minimum revision %q", minimum)
	}
	return nil
}
