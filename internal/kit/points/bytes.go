// SPDX-License-Identifier: Apache-2.0

package points

import (
	"strings"
	"unicode/utf8"
)

// EscapeBytes returns a word or value, which may be any bytes, as text for policy, which knows
// only text. Each byte that is not part of UTF-8 becomes one character: the Braille pattern whose
// number ends in it, 0xE9 U+28E9. Text with these characters themselves is escaped byte by byte,
// so that two words never have the same text. Other text is unchanged.
func EscapeBytes(word string) string {
	if utf8.ValidString(word) && !strings.ContainsFunc(word, isEscape) {
		return word
	}
	var b strings.Builder
	for i := 0; i < len(word); {
		r, size := utf8.DecodeRuneInString(word[i:])
		if r == utf8.RuneError && size == 1 || isEscape(r) {
			for ; size > 0; size-- {
				b.WriteRune(firstEscape + rune(word[i]))
				i++
			}
			continue
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

const firstEscape = '\u2800'

func isEscape(r rune) bool { return r >= firstEscape+0x80 && r <= firstEscape+0xff }
