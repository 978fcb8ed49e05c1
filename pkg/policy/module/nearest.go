// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxListed bounds the names that a hint lists.
const maxListed = 40

// longestName bounds what distances are measured of: their time grows with the product.
const longestName = 100

// Nearest is the one of known that wrong is a slip of the pen away from, or "".
func Nearest(wrong string, known []string) string {
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

// Meant says which of known may have been meant, and else which there are.
func Meant(wrong string, known []string) string {
	if near := Nearest(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 || len(known) > maxListed {
		return ""
	}
	return "there are: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
