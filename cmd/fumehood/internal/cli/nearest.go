// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/spelling"
)

// nearestName returns the name in known that wrong is the beginning or a misspelling of, or "".
func nearestName(wrong string, known []string) string {
	if len(wrong) < 2 {
		return ""
	}
	for _, name := range slices.Sorted(slices.Values(known)) {
		if strings.HasPrefix(name, wrong) {
			return name
		}
	}
	return spelling.NearestName(wrong, known)
}
