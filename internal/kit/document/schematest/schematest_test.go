// SPDX-License-Identifier: Apache-2.0

package schematest

import (
	"regexp"
	"testing"
	"unicode"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// The schema's pattern refuses the same characters as the table.
func TestVisiblePattern(t *testing.T) {
	lanetest.SkipShort(t)
	many, one := regexp.MustCompile(visiblePattern(true)), regexp.MustCompile(visiblePattern(false))
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r <= 0xdfff {
			continue // no characters
		}
		s := string(r)
		if many.MatchString(s) == unicode.Is(document.Hidden, r) {
			t.Errorf("%U: pattern of long texts says %v", r, !unicode.Is(document.Hidden, r))
		}
		if one.MatchString(s) == (unicode.Is(document.Hidden, r) || r == '\n' || r == '\t') {
			t.Errorf("%U: pattern of lines differs from the table", r)
		}
	}
}
