// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"
)

// A view is a text as its recipient may read it: unchanged, or decoded once.
type view struct {
	text string
	// from has, for each byte of text and for its end, the offset of its source in the
	// original; nil means the original itself.
	from []int32
	// skips reports that parts of the original are missing from text: such a part after
	// a find does not belong to it.
	skips bool
	// whole are parts of text that came from one run of the original; a secret in one
	// counts for the whole run.
	whole []viewRun
}

type viewRun struct{ start, end, from, to int }

// originalRange returns the part of the original from which text[start:end] was made.
func (v view) originalRange(start, end int) (int, int) {
	if v.whole != nil {
		from, to := -1, 0
		for _, r := range v.whole {
			if r.start < end && start < r.end {
				if from < 0 {
					from = r.from
				}
				to = max(to, r.to)
			}
		}
		return max(from, 0), to
	}
	if v.skips && start < end {
		return int(v.from[start]), int(v.from[end-1]) + 1
	}
	if v.from != nil {
		return int(v.from[start]), int(v.from[end])
	}
	return start, end
}

// searchedViews returns text unchanged; with the separators of values in URLs and forms as
// line ends (rules want a secret to end at a quote or blank); without
// percent-encoding; and with base64 decoded.
func searchedViews(text string, where string) []view {
	list := []view{{text: text}}
	fields := where == "url" || isFormData(text)
	if fields {
		list = append(list, view{text: replaceSeparators(text, "&?#")})
	}
	if where == "url" {
		list = append(list, view{text: replaceSeparators(text, "&?#/=")})
	}
	last := list[0]
	if hasPercentCode(text) || fields && strings.ContainsAny(text, "%+") {
		if v := decodePercent(text, fields); v.text != text {
			last = v
			list = append(list, v)
			if fields && strings.Contains(v.text, "+") {
				list = append(list, view{text: strings.ReplaceAll(v.text, "+", " "), from: v.from})
			}
		}
	}
	if v, ok := decodeBase64Runs(last); ok {
		list = append(list, v)
	}
	return list
}

// displayedViews returns text unchanged or, if it contains control characters or colors, as a
// reader sees it: once with them removed, and once with line ends in their place, since
// a letter that ends a color is not part of the word after it.
func displayedViews(text string) []view {
	if !containsInvisible(text) {
		return []view{{text: text}}
	}
	ended := []byte(text)
	gone := view{skips: true, from: make([]int32, 0, len(text)+1)}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		n := unseenAt(text[i:])
		if n == 0 {
			b.WriteByte(text[i])
			gone.from = append(gone.from, int32(i))
			i++
			continue
		}
		for range n {
			ended[i] = '\n'
			i++
		}
	}
	gone.text, gone.from = b.String(), append(gone.from, int32(len(text)))
	return []view{{text: string(ended)}, gone}
}

// Of bytes that are not a text, only what is near printable characters is searched: no rule matches fewer than
// minPrintable of them.
const (
	minPrintable  = 10
	nearPrintable = 48
)

// readableView returns text or, if it is not UTF-8, a view without what no rule can match: of its rows of UTF-8 those
// with fewer than minPrintable printable characters, unless they are within nearPrintable bytes of another row. A line
// end replaces what is left out.
func readableView(text string) view {
	if utf8.ValidString(text) {
		return view{text: text}
	}
	kept := view{skips: true}
	var b []byte
	at := 0 // end of what was kept
	for start, end := nextPrintable(text, 0); end > 0; start, end = nextPrintable(text, end) {
		if start-nearPrintable > at {
			at = start - nearPrintable
			b, kept.from = append(b, '\n'), append(kept.from, int32(at))
		}
		for end = min(end+nearPrintable, len(text)); at < end; at++ {
			b, kept.from = append(b, text[at]), append(kept.from, int32(at))
		}
	}
	kept.text, kept.from = string(b), append(kept.from, int32(at))
	return kept
}

// nextPrintable returns the next row of UTF-8 at or after at that has minPrintable printable characters; end is 0 if
// there is none.
func nextPrintable(text string, at int) (start, end int) {
	for at+minPrintable <= len(text) {
		start = at
		if last := lastBreak(text, at, at+minPrintable); last >= 0 { // every row from here to there is too short
			at = last + 1
			continue
		}
		count := 0
		for at < len(text) {
			_, size := utf8.DecodeRuneInString(text[at:])
			if text[at] >= utf8.RuneSelf && size == 1 {
				break
			}
			if !isControl(text[at]) {
				count++
			}
			at += size
		}
		if count >= minPrintable {
			return start, at
		}
		at++
	}
	return 0, 0
}

// lastBreak returns the offset of the last byte of text[from:to] that its neighbors show to be part of no character
// in UTF-8, or -1.
func lastBreak(text string, from, to int) int {
	for i := to - 1; i >= from; i-- {
		c := text[i]
		switch {
		case c < utf8.RuneSelf:
		case c < 0xc0: // goes on
			if i == 0 || text[i-1] < utf8.RuneSelf {
				return i
			}
		case c < 0xc2 || c > 0xf4 || i+1 == len(text) || text[i+1]&0xc0 != 0x80: // should begin one
			return i
		}
	}
	return -1
}

// containsInvisible reports whether text has an invisible character.
func containsInvisible(text string) bool {
	for i := range len(text) {
		if isInvisible(text[i]) {
			return true
		}
	}
	return false
}

// isInvisible reports whether c is invisible: a control character that does not move the cursor.
func isInvisible(c byte) bool { return isControl(c) && !(c >= '\t' && c <= '\r') }

// unseenAt returns how many bytes at the beginning of s are invisible.
func unseenAt(s string) int {
	if !isInvisible(s[0]) {
		return 0
	}
	if !strings.HasPrefix(s, "\x1b[") {
		return 1
	}
	n := 2
	for n < len(s) && s[n] >= ' ' && s[n] < '@' {
		n++
	}
	if n < len(s) && s[n] >= '@' && s[n] <= '~' {
		return n + 1
	}
	return 1
}

// isFormData reports whether text looks like fields of a form: "a=b&c=d".
func isFormData(text string) bool {
	return strings.Contains(text, "=") && strings.Contains(text, "&") && !strings.ContainsAny(text, " \n\"<")
}

func replaceSeparators(text, marks string) string {
	b := []byte(text)
	for i, c := range b {
		if strings.IndexByte(marks, c) >= 0 {
			b[i] = '\n'
		}
	}
	return string(b)
}

// decodePercent decodes %XX and leaves invalid ones unchanged. With fields, the separators
// first become line ends.
func decodePercent(text string, fields bool) view {
	out := make([]byte, 0, len(text))
	from := make([]int32, 0, len(text)+1)
	for i := 0; i < len(text); i++ {
		c, at := text[i], i
		if c == '%' && i+2 < len(text) && hexDigit(text[i+1]) >= 0 && hexDigit(text[i+2]) >= 0 {
			c = byte(hexDigit(text[i+1])<<4 | hexDigit(text[i+2]))
			i += 2
		} else if fields && (c == '&' || c == '?') {
			c = '\n'
		}
		out, from = append(out, c), append(from, int32(at))
	}
	return view{text: string(out), from: append(from, int32(len(text)))}
}

// hasPercentCode reports whether decodePercent changes text that has no fields.
func hasPercentCode(text string) bool {
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], '%')
		if i < 0 {
			return false
		}
		if at += i; at+2 < len(text) && hexDigit(text[at+1]) >= 0 && hexDigit(text[at+2]) >= 0 {
			return true
		}
	}
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return int(c - 'A' + 10)
	}
	return -1
}

const (
	minRun   = 24 // minimum length of a base64 run that is decoded
	minPlain = 16 // consecutive characters that make decoded bytes a text
	longLine = 60 // base64 continues after a line end only if the line is this long
)

// decodeBase64Runs returns the decoded base64 runs of v, each on separate lines. A run is
// decoded from each of its first four characters, since a path or a prefix before it
// may look like base64 too.
func decodeBase64Runs(v view) (view, bool) {
	var b strings.Builder
	d := view{whole: []viewRun{}}
	for at := 0; at < len(v.text); {
		start, end, letters := nextRun(v.text, at)
		at = end
		if len(letters) < minRun {
			continue
		}
		for shift := range 4 {
			text, ok := plainText(letters[shift:])
			if !ok {
				continue
			}
			from, to := v.originalRange(start, end)
			d.whole = append(d.whole, viewRun{b.Len(), b.Len() + len(text), from, to})
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	d.text = b.String()
	return d, d.text != ""
}

// nextRun returns the next run of base64 at or after at, and, of one with minRun letters, these without line ends and
// in the standard alphabet. end is after the run, and greater than at unless the text is at its end.
func nextRun(text string, at int) (start, end int, letters []byte) {
	for at < len(text) && alphabet[text[at]] == 0 {
		at++
	}
	start, end = at, at
	for end < len(text) && alphabet[text[end]] != 0 {
		end++
	}
	if end-start < minRun {
		return start, end, nil // too short to be decoded, and to continue after a line end
	}
	letters = make([]byte, 0, end-start)
	end = start
	line := 0
	for end < len(text) {
		if c := alphabet[text[end]]; c != 0 {
			letters = append(letters, c)
			line++
			end++
			continue
		}
		skip := lineEnd(text[end:])
		if skip == 0 || line < longLine || line%4 != 0 || end+skip >= len(text) || alphabet[text[end+skip]] == 0 {
			break
		}
		end += skip
		line = 0
	}
	return start, end, letters
}

// lineEnd returns the length of the line end at the beginning of s: a real one or one
// within a JSON string.
func lineEnd(s string) int {
	for _, mark := range []string{"\r\n", "\n", `\r\n`, `\n`} {
		if strings.HasPrefix(s, mark) {
			return len(mark)
		}
	}
	return 0
}

var alphabet = func() (t [256]byte) {
	for c := range t {
		switch b := byte(c); {
		case 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '+', b == '/':
			t[c] = b
		case b == '-':
			t[c] = '+'
		case b == '_':
			t[c] = '/'
		}
	}
	return t
}()

// plainText decodes letters and reports whether they contain text. Bytes that are not
// text become line ends.
func plainText(letters []byte) (string, bool) {
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(letters)))
	if len(letters)%4 == 1 {
		letters = letters[:len(letters)-1]
	}
	n, _ := base64.RawStdEncoding.Decode(out, letters)
	out = slices.Clip(out[:n])
	row, longest := 0, 0
	for i, c := range out {
		if c != '\n' && c != '\r' && c != '\t' && (c < ' ' || c > '~') {
			out[i], row = '\n', 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	return string(out), longest >= minPlain
}
