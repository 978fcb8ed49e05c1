// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/spelling"
)

// maxListed limits the names that a hint lists.
const maxListed = 40

// SuggestName is a hint with the member of known that wrong may mean, or else with all of them.
func SuggestName(wrong string, known []string) string {
	if near := spelling.NearestName(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 || len(known) > maxListed {
		return ""
	}
	return "use one of: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
