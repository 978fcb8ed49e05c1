// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxName bounds the names that are compared: the time grows with the product of two lengths.
const maxName = 64

// nearest returns the name in known that wrong is probably a misspelling of, or "".
func nearest(wrong string, known []string) string {
	if len(wrong) < 2 || len(wrong) > maxName {
		return ""
	}
	best, limit := "", max(2, len(wrong)/3)+1
	for _, name := range slices.Sorted(slices.Values(known)) {
		distance := levenshtein.ComputeDistance(strings.ToLower(wrong), name)
		if strings.HasPrefix(name, wrong) {
			distance = min(distance, 1)
		}
		if distance < limit && distance < len(name) {
			best, limit = name, distance
		}
	}
	return best
}
