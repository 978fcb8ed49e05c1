// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// Rows of characters are found wherever they are, as by reading every byte.
func TestPrintableRows(t *testing.T) {
	every := func(text string, at int) (int, int) {
		for ; at < len(text); at++ {
			start, count := at, 0
			for at < len(text) {
				c, size := utf8.DecodeRuneInString(text[at:])
				if c == utf8.RuneError && size == 1 {
					break
				}
				if size > 1 || !isControl(text[at]) {
					count++
				}
				at += size
			}
			if count >= minPrintable {
				return start, at
			}
		}
		return 0, 0
	}
	dice, rows := rand.New(rand.NewPCG(1, 2)), 0
	pieces := []string{"a", "b", "\x00", "é", "€", "😀", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xbf", "\xc0", "\xff", "0123456789"}
	for range 20_000 {
		var text string
		for range dice.IntN(60) {
			text += pieces[dice.IntN(2+dice.IntN(len(pieces)-1))]
		}
		for at := 0; ; rows++ {
			start, end := nextPrintable(text, at)
			if wantStart, wantEnd := every(text, at); start != wantStart || end != wantEnd {
				t.Fatalf("%q from %d: %d to %d instead of %d to %d", text, at, start, end, wantStart, wantEnd)
			}
			if at = end; end == 0 {
				break
			}
		}
	}
	if rows == 0 {
		t.Error("no text has a row")
	}
}
