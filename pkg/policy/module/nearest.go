// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxListed limits the names that a hint lists.
const maxListed = 40

// longestName limits the names that are compared: the time grows with the product of the
// lengths.
const longestName = 100

// Nearest is the member of known of which wrong is a misspelling, or "".
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

// Meant is a hint with the member of known that wrong may mean, or else with all of them.
func Meant(wrong string, known []string) string {
	if near := Nearest(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 || len(known) > maxListed {
		return ""
	}
	return "use one of: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
