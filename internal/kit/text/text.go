// SPDX-License-Identifier: Apache-2.0

// Package text makes untrusted text safe to display to a person: in a comment, in a log or on a
// terminal.
//
// It promises that no string it returns contains a control character (except the newline and tab
// of a Block), an escape sequence, a bidirectional control, a zero-width or otherwise invisible
// character, invalid UTF-8, a line that GitHub's runner takes for a workflow command, or more
// than four combining marks on one character.
//
// Format: characters that cannot be displayed are replaced by their name, so that a person can
// see that they were there. A C0 control becomes its name (⟨ESC⟩, ⟨NUL⟩: not its picture, ␛,
// which few fonts have), any other hidden character ⟨U+200B⟩, a byte that is not UTF-8 ⟨0xFF⟩.
// The following are altered, and a Block counts them: ANSI color and erase-line sequences
// (removed), the runner's "::" at the beginning of a line and its "##[" anywhere (one space
// inserted: ": :error::", "## [error]"). A presentation selector after a symbol, which only
// chooses between two drawings of it, is removed and not counted.
//
// It does not protect against look-alike letters, and it does not escape for HTML or Markdown:
// that is up to the caller, which knows where the text will appear.
package text

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks one character may have: Vietnamese and Hebrew need up
// to three, text that overlaps its neighboring lines has dozens.
const maxMarks = 4

var controls = [0x20]string{
	"NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI",
	"DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
}

// CountUnits returns the length of s in UTF-16 code units. GitHub states its limits in
// characters; UTF-16 units are never fewer than characters, and a text of n units
// has at most 3n bytes.
func CountUnits(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

func runeUnits(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// Inline returns s as one line of at most max units, where max is at least 1. A
// newline is displayed as ↵ and a tab as ⇥; text that does not fit is cut, with
// "…" as the last character.
func Inline(s string, max int) string {
	w := writer{limit: max}
	for i := 0; i < len(s); {
		before := w
		r, size := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\n':
			w.writeSymbol('↵')
		case '\t':
			w.writeSymbol('⇥')
		default:
			w.writeInputRune(r, size, s[i])
		}
		i += size
		if w.isFull() || (i < len(s) && w.units == max) {
			before.writeRune('…')
			return string(before.dst)
		}
	}
	return string(w.dst)
}

// A writer appends untrusted runes to dst in their displayed form. Copies of a writer
// share dst's array: only the longest copy, or the one used last, may be continued.
type writer struct {
	dst   []byte
	units int
	limit int // the writer is full above it

	prev   rune // the previous rune of the input
	marks  int  // combining marks in a row
	column int  // 0: only blanks on this line so far, 1: then one colon, 2: anything else
	hashes int  // '#' in a row
	broken int  // workflow commands broken
}

func (w *writer) isFull() bool { return w.units > w.limit }

func (w *writer) writeRune(r rune) {
	w.dst = utf8.AppendRune(w.dst, r)
	w.units += runeUnits(r)
}

func (w *writer) writeString(s string) {
	w.dst = append(w.dst, s...)
	w.units += CountUnits(s)
}

// writeSymbol appends one of our own symbols, which represents a blank.
func (w *writer) writeSymbol(sign rune) {
	w.column, w.hashes, w.marks, w.prev = 2, 0, 0, sign
	w.writeRune(sign)
}

// writeInputRune appends r, which occupied size bytes of the input beginning with first.
func (w *writer) writeInputRune(r rune, size int, first byte) {
	w.breakCommand(r)
	prev := w.prev
	w.prev = r
	if r >= 0x20 && r < 0x7f {
		w.marks = 0
		w.dst = append(w.dst, byte(r))
		w.units++
		return
	}
	w.writeSpecialRune(r, prev, size, first)
}

// writeSpecialRune appends a rune that is not printable ASCII.
func (w *writer) writeSpecialRune(r, prev rune, size int, first byte) {
	if unicode.Is(unicode.M, r) {
		w.marks++
	} else {
		w.marks = 0
	}
	switch {
	case r == utf8.RuneError && size == 1:
		w.writeString(fmt.Sprintf("⟨0x%02X⟩", first))
	case r < 0x20:
		w.writeString("⟨" + controls[r] + "⟩")
	case r == 0x7f:
		w.writeString("⟨DEL⟩")
	case (r == 0xFE0E || r == 0xFE0F) && unicode.Is(unicode.So, prev):
		w.marks = 0
	case IsHidden(r), w.marks > maxMarks:
		w.writeString(fmt.Sprintf("⟨U+%04X⟩", r))
	default:
		w.writeRune(r)
	}
}

// IsHidden reports whether r has no ink and no fixed width, or changes how its
// neighbors are displayed: controls, format and bidirectional characters,
// separators other than the space, fillers, variation selectors, private-use and
// unassigned characters.
func IsHidden(r rune) bool {
	return !unicode.IsPrint(r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r)
}

// breakCommand inserts a space into text that GitHub's runner would take for a
// workflow command. The runner trims blanks and then looks for "::"; the older
// "##[" counts anywhere in a line. Its comparison is culture-sensitive and skips
// invisible characters, but none of those get here.
func (w *writer) breakCommand(next rune) {
	if (next == ':' && w.column == 1) || (next == '[' && w.hashes >= 2) {
		w.dst = append(w.dst, ' ')
		w.units++
		w.broken++
	}
	switch {
	case next == ':' && w.column == 0:
		w.column = 1
	case next != ' ' && next != '\t' || w.column != 0:
		w.column = 2
	}
	if next == '#' {
		w.hashes++
	} else {
		w.hashes = 0
	}
}
