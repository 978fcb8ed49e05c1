// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var plainName = pattern.New(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// Hidden are the characters that a document must not contain anywhere: controls other
// than newline and tab, separators that some readers take for line breaks, and
// characters that reorder or hide text. Joiners (U+200C, U+200D) and the selectors
// U+FE00 to U+FE0F are allowed: scripts and emoji need them.
var Hidden = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0000, Hi: 0x0008, Stride: 1},
		{Lo: 0x000b, Hi: 0x001f, Stride: 1},
		{Lo: 0x007f, Hi: 0x009f, Stride: 1},
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // grapheme joiner
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // bidi: Arabic letter mark
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers: invisible letters
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // zero width space
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, // bidi marks
		{Lo: 0x2028, Hi: 0x2029, Stride: 1}, // line and paragraph separator
		{Lo: 0x202a, Hi: 0x202e, Stride: 1}, // bidi embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // invisible operators, bidi isolates
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // Hangul filler
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1}, // interlinear annotation
	},
	R32: []unicode.Range32{
		{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}, // tags: text that no font renders
		{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}, // selectors that can carry any bytes
	},
	LatinOffset: 4,
}

func isHidden(r rune) bool {
	if r >= ' ' && r <= '~' || r == '\n' {
		return false // fast path for nearly all of a document
	}
	return unicode.Is(Hidden, r)
}

// nameRune names the kind of hidden character that r is.
func nameRune(r rune) string {
	switch {
	case r == 0xfeff:
		return "the byte order mark U+FEFF"
	case unicode.Is(unicode.Bidi_Control, r):
		return fmt.Sprintf("the bidirectional control %U", r)
	case unicode.IsControl(r):
		return fmt.Sprintf("the control character %U", r)
	default:
		return fmt.Sprintf("the invisible character %U", r)
	}
}

// A strayCharacter is a character that no document may contain, and where it is.
type strayCharacter struct {
	at      Position
	message string
}

// scanDocument reports bytes that are not UTF-8, and replaces characters that no document may
// contain with U+FFFD, before any parser sees them. placeHidden makes what contains one of
// them invalid. A carriage return may only end a line.
func scanDocument(data []byte, ps *Problems) ([]byte, []strayCharacter) {
	var found []strayCharacter
	var clean bytes.Buffer
	at := Position{1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		message := ""
		switch {
		case r == utf8.RuneError && size == 1:
			ps.Add(at, "", "the byte 0x%02X is not valid UTF-8", data[i])
			return data, nil // columns are meaningless from here on
		case r == '\r' && i+1 < len(data) && data[i+1] == '\n':
			// a Windows line end
		case r == '\r':
			message = "a carriage return may only end a line, before a newline"
		case isHidden(r):
			message = nameRune(r) + " is not allowed: write it as an escape in the code that needs it"
		}
		if message == "" {
			clean.Write(data[i : i+size])
		} else {
			clean.WriteRune(utf8.RuneError)
			found = append(found, strayCharacter{at, message})
		}
		at = at.advanceBy(r)
		i += size
	}
	return clean.Bytes(), found
}

// placeHidden makes the smallest value that contains a hidden character, or that a comment
// with one follows, Unreadable. The document is rejected if no value contains one of them,
// if it cannot be parsed, or if there are too many.
func placeHidden(root *Node, hidden []strayCharacter, ps *Problems) {
	if len(hidden) == 0 {
		return
	}
	var places []nodePlace
	if len(ps.List) == 0 && len(hidden) < MaxProblems {
		places = root.appendPlaces(nil)
	}
	var rejected Problems
	for _, h := range hidden {
		i := sort.Search(len(places), func(i int) bool { return h.at.isBefore(places[i].at) })
		if i == 0 || places[i-1].node == root {
			rejected.Add(h.at, "", "%s", h.message)
			continue
		}
		places[i-1].node.markUnreadable(h.at, h.message)
	}
	if len(rejected.List) > 0 {
		ps.List = rejected.List // a parser's complaint is about the replacement
	}
}

// A nodePlace is where a value, or the name of its field, begins.
type nodePlace struct {
	at   Position
	node *Node
}

// appendPlaces adds the places of n and of everything in it to list, in the order of the document.
func (n *Node) appendPlaces(list []nodePlace) []nodePlace {
	list = append(list, nodePlace{n.At, n})
	for _, m := range n.Members {
		list = append(list, nodePlace{m.At, m.Value})
		list = m.Value.appendPlaces(list)
	}
	for _, item := range n.Items {
		list = item.appendPlaces(list)
	}
	return list
}

// isBefore reports whether p is before q.
func (p Position) isBefore(q Position) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Col < q.Col
}

// advanceBy returns the position after r.
func (p Position) advanceBy(r rune) Position {
	if r == '\n' {
		return Position{p.Line + 1, 1}
	}
	return Position{p.Line, p.Col + 1}
}

// FirstHidden finds a hidden character that an escape put into s; count is its
// position in characters, from 1.
func FirstHidden(s string) (r rune, count int, found bool) {
	for _, r := range s {
		count++
		if isHidden(r) {
			return r, count, true
		}
	}
	return 0, 0, false
}

// Quote formats s for a message: quoted, printable and not long.
func Quote(s string) string {
	const maximum = 48
	if utf8.RuneCountInString(s) <= maximum {
		return strconv.Quote(s)
	}
	runes := []rune(s[:min(len(s), 4*maximum)])
	return strconv.Quote(string(runes[:maximum])) + "…"
}

// clipDigits shortens a number for a message.
func clipDigits(digits string) string {
	const maximum = 24
	if len(digits) <= maximum {
		return digits
	}
	return digits[:maximum] + "…"
}

// NearestName returns the known name that a writer of name may have meant, or "".
func NearestName(name string, known []string) string {
	best, minimum := "", 3
	if len(name) < 4 {
		minimum = 2
	}
	for _, k := range known {
		if d := editDistance(name, k, minimum); d < minimum {
			best, minimum = k, d
		}
	}
	return best
}

// editDistance counts the letters to add, drop, change or swap with their neighbor to
// turn a into b. Names that differ too much in length get limit without counting.
func editDistance(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}
	var older, old []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row = old, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := old[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
