// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxLine  = 2000 // displayed units of one line
	maxTicks = 64   // displayed backticks in a row, so that a fence stays short
	noteRoom = 60   // units for a note of omitted bytes
)

// A Block is untrusted output as lines, each ending in a newline, safe to display
// between two fences.
type Block struct {
	Text     string
	Units    int
	Omitted  int64 // bytes of the stream that are omitted
	Colours  int   // color and erase-line sequences removed from the displayed part
	Commands int   // workflow commands broken in the displayed part
}

// Excerpt returns the displayed form of a stream of total bytes that begins with
// head and ends with tail, in at most max units.
//
// If the stream does not fit, two fifths of the space go to its beginning and the
// rest to its end, whole lines where possible, and a line between them says how
// many bytes are omitted. A line of more than 2,000 units is cut in its middle and
// says so too. A carriage return ends a line, displayed as ⟨CR⟩ unless a newline
// follows it: every state of a progress bar is displayed, since displaying only
// the last would let a command hide what it printed before.
func Excerpt(head, tail []byte, total int64, max int) Block {
	missing := total - int64(len(head)) - int64(len(tail))
	if missing <= 0 {
		missing = 0
		if len(tail) > 0 {
			head, tail = append(bytes.Clone(head), tail...), nil
		}
		var whole lines
		if rest := whole.takeFront(head, max); len(rest) == 0 {
			return whole.joinBlock(nil, 0)
		}
	}
	return excerptEnds(head, tail, missing, max-noteRoom)
}

func excerptEnds(head, tail []byte, missing int64, room int) Block {
	var first, last lines
	rest := first.takeFront(head, room*2/5)
	if missing == 0 { // head is the whole stream
		left := last.takeBack(rest, room-first.units)
		return first.joinBlock(&last, missing+int64(len(left)))
	}
	left := last.takeBack(tail, room-first.units)
	if len(left) == 0 && len(rest) > 0 {
		first = lines{}
		rest = first.takeFront(head, room-last.units)
	}
	return first.joinBlock(&last, missing+int64(len(rest)+len(left)))
}

// lines collects displayed lines.
type lines struct {
	list     []string
	units    int
	cut      int64 // bytes omitted within lines
	colors   int
	commands int
}

// takeFront takes lines from the beginning of src while they fit into max units and
// returns the rest.
func (l *lines) takeFront(src []byte, max int) (rest []byte) {
	for len(src) > 0 {
		n := bytes.IndexAny(src, "\r\n")
		if n < 0 {
			n = len(src)
		}
		end := offsetAfterLineEnd(src, n)
		if !l.addLine(src[:n], displayedLineEnd(src[n:end]), max) {
			break
		}
		src = src[end:]
	}
	return src
}

// takeBack takes lines from the end of src while they fit and returns the rest.
func (l *lines) takeBack(src []byte, max int) (rest []byte) {
	for len(src) > 0 {
		end := len(src)
		if src[end-1] == '\n' {
			end--
		}
		if end > 0 && src[end-1] == '\r' {
			end--
		}
		start := bytes.LastIndexAny(src[:end], "\r\n") + 1
		if !l.addLine(src[start:end], displayedLineEnd(src[end:]), max) {
			break
		}
		src = src[:start]
	}
	slices.Reverse(l.list)
	return src
}

// offsetAfterLineEnd returns the offset after the line end at src[n:]: "\n", "\r\n" or
// "\r".
func offsetAfterLineEnd(src []byte, n int) int {
	switch {
	case bytes.HasPrefix(src[n:], []byte("\r\n")):
		return n + 2
	case n < len(src):
		return n + 1
	}
	return n
}

func displayedLineEnd(terminator []byte) string {
	if string(terminator) == "\r" {
		return "⟨CR⟩\n"
	}
	return "\n"
}

// addLine appends one line in its displayed form, if it fits.
func (l *lines) addLine(raw []byte, end string, max int) bool {
	room := max - l.units - CountUnits(end)
	s := showLine(raw, min(room, maxLine))
	if s.left > 0 && room < 2*noteRoom || room < 0 {
		return false
	}
	l.list = append(l.list, s.text+end)
	l.units += s.units + CountUnits(end)
	l.cut += int64(s.left)
	l.colors += s.colors
	l.commands += s.commands
	return true
}

// joinBlock joins l, a note of gap omitted bytes, and last.
func (l *lines) joinBlock(last *lines, gap int64) Block {
	if last == nil {
		last = &lines{}
	}
	var b strings.Builder
	units := l.units + last.units
	for _, s := range l.list {
		b.WriteString(s)
	}
	if gap > 0 {
		note := fmt.Sprintf("⟨… %s left out here …⟩\n", Size(gap))
		units += CountUnits(note)
		b.WriteString(note)
	}
	for _, s := range last.list {
		b.WriteString(s)
	}
	return Block{
		Text: b.String(), Units: units, Omitted: gap + l.cut + last.cut,
		Colours: l.colors + last.colors, Commands: l.commands + last.commands,
	}
}

// shown is one line in its displayed form.
type shown struct {
	text     string
	units    int
	left     int // bytes not displayed, except for color sequences
	colors   int
	commands int
}

// showLine formats a line in at most limit units: whole, or its beginning and end
// with a note between them.
func showLine(raw []byte, limit int) shown {
	s := showPart(raw, limit)
	if s.left == 0 || limit < 2*noteRoom {
		return s
	}
	room := limit - noteRoom
	a := showPart(raw, room*2/3)
	rest := raw[len(raw)-a.left:]
	z := showEnd(rest, room-a.units)
	left := a.left - z.read
	note := fmt.Sprintf("⟨… %s of this line left out …⟩", Size(int64(left)))
	return shown{
		text: a.text + note + z.text, units: a.units + CountUnits(note) + z.units, left: left,
		colors: a.colors + z.colors, commands: a.commands + z.commands,
	}
}

// showPart formats as much of the beginning of raw as fits into limit units.
func showPart(raw []byte, limit int) shown {
	w := writer{limit: limit, dst: make([]byte, 0, max(0, min(len(raw), limit)+8))}
	colors, ticks := 0, 0
	for i := 0; i < len(raw); {
		if n := colorSequence(raw[i:]); n > 0 {
			colors++
			i += n
			continue
		}
		before := w
		r, size := utf8.DecodeRune(raw[i:])
		ticks = w.writeOutputRune(r, size, raw[i], ticks)
		if w.isFull() {
			return shown{string(before.dst), before.units, len(raw) - i, colors, before.broken}
		}
		i += size
	}
	return shown{string(w.dst), w.units, 0, colors, w.broken}
}

// writeOutputRune appends one rune of a command's output. Tabs stay, and no-break spaces,
// with which tree and similar tools draw, become spaces. It returns the number
// of backticks in a row; those past maxTicks are displayed as one "⟨`…⟩".
func (w *writer) writeOutputRune(r rune, size int, first byte, ticks int) int {
	if r != '`' {
		ticks = 0
	}
	switch {
	case r == '`' && ticks == maxTicks:
		w.writeString("⟨`…⟩")
		return ticks + 1
	case r == '`' && ticks > maxTicks:
		return ticks
	case r == '\t':
		w.breakCommand(r)
		w.writeRune(r)
	case r == '\u00a0':
		w.writeInputRune(' ', 1, ' ')
	default:
		w.writeInputRune(r, size, first)
	}
	if r == '`' {
		ticks++
	}
	return ticks
}

// lineEnd is the end of a line with the number of bytes that it represents.
type lineEnd struct {
	shown
	read int
}

// showEnd formats the end of raw in at most limit units.
func showEnd(raw []byte, limit int) lineEnd {
	for n := min(len(raw), limit); n > 0; n /= 2 {
		start := len(raw) - n
		for start < len(raw) && !utf8.RuneStart(raw[start]) {
			start++
		}
		if s := showPart(raw[start:], limit); s.left == 0 {
			return lineEnd{s, len(raw) - start}
		}
	}
	return lineEnd{}
}

// colourSequence returns the length of the ANSI sequence at the beginning of raw
// if it sets colors (SGR, "m") or erases to the end of a line (EL, "K", which
// grep sends with every color), else 0.
func colorSequence(raw []byte) int {
	if len(raw) < 3 || raw[0] != 0x1b || raw[1] != '[' {
		return 0
	}
	for i := 2; i < len(raw) && i < 40; i++ {
		switch c := raw[i]; {
		case c == 'm' || c == 'K':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}

// Fence returns a line of backticks that nothing in s can close: one more than
// the longest run of them in s, and at least three.
func Fence(s string) string {
	longest, run := 2, 0
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

// Size formats a number of bytes with its unit: "1 byte", "1,234 bytes".
func Size(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return FormatCount(n) + " bytes"
}

// FormatCount formats n with commas between thousands.
func FormatCount(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
