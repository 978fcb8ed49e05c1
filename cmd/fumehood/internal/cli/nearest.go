// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/spelling"
)

// nearest returns the name in known that wrong is the beginning or a misspelling of, or "".
func nearest(wrong string, known []string) string {
	if len(wrong) < 2 {
		return ""
	}
	for _, name := range slices.Sorted(slices.Values(known)) {
		if strings.HasPrefix(name, wrong) {
			return name
		}
	}
	return spelling.Nearest(wrong, known)
}
