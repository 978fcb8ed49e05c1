// SPDX-License-Identifier: Apache-2.0

// Package spelling finds what a misspelt name may mean.
package spelling

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// longestName limits the names that are compared, in bytes: the time grows with the product
// of the lengths.
const longestName = 100

// NearestName returns the member of known of which wrong is a misspelling, or "". Case does not
// matter.
func NearestName(wrong string, known []string) string {
	if len(wrong) > longestName {
		return ""
	}
	best, least := "", max(2, len(wrong)/3)+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(wrong), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}
