// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"slices"
	"strings"
)

// A view is a text as somebody may read it who gets it: as it is, or decoded once.
type view struct {
	text string
	// from has, for each byte of text and for its end, where in the original its source
	// begins; nil is the original itself.
	from []int32
	// skips says that parts of the original are nowhere in text: one that stands behind
	// what is looked for is no part of it.
	skips bool
	// whole are parts of text that came from one run of the original; a secret in one
	// stands for all of the run.
	whole []run
}

type run struct{ start, end, from, to int }

// origin returns the part of the original that text[start:end] was made of.
func (v view) origin(start, end int) (int, int) {
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

// views returns text as it is, with what separates values in URLs and forms as line
// ends (rules want a secret to end at a quote or blank), without percent signs, and
// what base64 in it says.
func views(text string, where string) []view {
	list := []view{{text: text}}
	fields := where == "url" || form(text)
	if fields {
		list = append(list, view{text: separated(text, "&?#")})
	}
	if where == "url" {
		list = append(list, view{text: separated(text, "&?#/=")})
	}
	last := list[0]
	if strings.Contains(text, "%") || fields && strings.Contains(text, "+") {
		if v := unescaped(text, fields); v.text != text {
			last = v
			list = append(list, v)
			if fields && strings.Contains(v.text, "+") {
				list = append(list, view{text: strings.ReplaceAll(v.text, "+", " "), from: v.from})
			}
		}
	}
	if v, ok := decoded(last); ok {
		list = append(list, v)
	}
	return list
}

// shown returns text as it is or, when controls and colours are in it, as who reads it
// sees it: with them gone, and with line ends in their place, since a letter that ends a
// colour is no part of the word behind it.
func shown(text string) []view {
	if strings.IndexFunc(text, unseen) < 0 {
		return []view{{text: text}}
	}
	ended := []byte(text)
	gone := view{skips: true}
	var b strings.Builder
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

// unseen says that nobody sees r: a control that moves nothing to another place.
func unseen(r rune) bool {
	return (r < ' ' || r == 0x7f) && !(r >= '\t' && r <= '\r')
}

// unseenAt is how much of the beginning of s nobody sees.
func unseenAt(s string) int {
	if !unseen(rune(s[0])) {
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

// form says that text looks like fields of a form: "a=b&c=d".
func form(text string) bool {
	return strings.Contains(text, "=") && strings.Contains(text, "&") && !strings.ContainsAny(text, " \n\"<")
}

func separated(text, marks string) string {
	b := []byte(text)
	for i, c := range b {
		if strings.IndexByte(marks, c) >= 0 {
			b[i] = '\n'
		}
	}
	return string(b)
}

// unescaped undoes %XX, and leaves alone what is none. With fields what separates them
// becomes a line end before that.
func unescaped(text string, fields bool) view {
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
	minRun   = 24 // characters of base64 that are worth a look
	minPlain = 16 // characters in a row that make what was decoded a text
	longLine = 60 // base64 goes on after a line end only when the line is as long
)

// decoded is what the runs of base64 in v say, each on lines of its own. A run is read
// from each of its first four characters, since a path or a prefix before it may look
// like base64 too.
func decoded(v view) (view, bool) {
	var b strings.Builder
	d := view{whole: []run{}}
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
			from, to := v.origin(start, end)
			d.whole = append(d.whole, run{b.Len(), b.Len() + len(text), from, to})
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	d.text = b.String()
	return d, d.text != ""
}

// nextRun returns the next run of base64 from at on, without line ends and in the
// standard alphabet; end is past it, and past at unless the text is at its end.
func nextRun(text string, at int) (start, end int, letters []byte) {
	for at < len(text) && alphabet[text[at]] == 0 {
		at++
	}
	start, end = at, at
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

// lineEnd is how long a line end s begins with: a real one or one within a JSON string.
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

// plainText decodes letters and says whether text is in it. What is no text becomes a
// line end.
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
