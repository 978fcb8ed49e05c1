// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The maximum sizes in a record, of texts in bytes and of lists.
const (
	maxText  = 8 << 10 // a proposal's text
	maxWords = 1 << 10 // a message, a path, a word
	maxName  = 256
	maxList  = 64

	maxLayers = 16
	maxKind   = 32

	// MaxLine is the maximum length of a line. A decision that would be longer
	// loses its input.
	MaxLine = 128 << 10
)

// An inputTruncator bounds the texts and lists of a record's input, and records which it cut.
type inputTruncator struct{ masked, erased []string }

// cutText returns s as valid UTF-8 of at most most bytes; at is its pointer below "/input".
func (c *inputTruncator) cutText(at, s string, limit int) string {
	cut := TruncateText(s, limit)
	if len(s) > limit {
		c.masked = append(c.masked, "/input"+at)
	}
	return cut
}

// cutList returns at most maxList items of l, each bounded.
func (c *inputTruncator) cutList(at string, l []string, limit int) []string {
	out := make([]string, 0, min(len(l), maxList))
	for i, s := range l {
		if i == maxList {
			c.masked = append(c.masked, "/input"+at)
			break
		}
		out = append(out, c.cutText(at+"/"+strconv.Itoa(i), s, limit))
	}
	return out
}

// recordMasked records that a value is truncated, if there was one.
func (c *inputTruncator) recordMasked(at string, there bool) {
	if there {
		c.masked = append(c.masked, "/input"+at)
	}
}

// recordErased records that a value is left out, if there was one.
func (c *inputTruncator) recordErased(at string, there bool) {
	if there {
		c.erased = append(c.erased, "/input"+at)
	}
}

// TruncateText returns s as valid UTF-8 of at most most bytes, which must be at least
// three. A truncated text ends in "…".
func TruncateText(s string, limit int) string {
	if len(s) > limit {
		end := limit - len("…")
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	if utf8.ValidString(s) {
		return s
	}
	// U+FFFD is longer than the byte that it replaces.
	return TruncateText(strings.ToValidUTF8(s, "\uFFFD"), limit)
}

// truncateTexts bounds a list that is not part of an input.
func truncateTexts(l []string, limit int) []string {
	var c inputTruncator
	return c.cutList("", l, limit)
}
