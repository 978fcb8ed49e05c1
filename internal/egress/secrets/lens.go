// SPDX-License-Identifier: Apache-2.0

package secrets

// A streamMatcher reads a stream in one way and searches the result for words: without line ends
// and other control characters; also without colors; or also with escapes decoded. It
// works byte by byte, so the chunks of the stream do not matter.
type streamMatcher struct {
	words   *automaton
	colors  bool      // skip them, as a terminal does
	decodes bool      // %41, \x41, \u0041, \n
	plain   [256]bool // what changes nothing between finds

	state int32
	ring  []int64 // stream offsets of the last bytes seen
	seen  int64   // bytes
	gap   int     // bytes skipped since the last one
	part  [40]byte
	parts int   // bytes of an incomplete escape
	from  int64 // its offset
	esc   bool  // the escape is a terminal's

	tail span // a find in base64 whose last character may follow
	grow int  // how many more bytes
}

// maxGap is the maximum distance of two bytes that count as neighbors.
const maxGap = 256

// A span is one find in a stream.
type span struct {
	from, to int64
	word     *word
}

func newStreamMatcher(words *automaton, colors, decodes bool) *streamMatcher {
	l := &streamMatcher{words: words, colors: colors, decodes: decodes}
	size := 1
	for size < words.maximum+2 {
		size *= 2
	}
	l.ring = make([]int64, size)
	for c := range 256 {
		b := byte(c)
		l.plain[c] = words.first[b] == 0 && !(colors && b == 0x1b) && !(decodes && (b == '%' || b == '\\'))
	}
	return l
}

func isControl(b byte) bool { return b < ' ' || b == 0x7f }

// searchChunk searches a chunk that begins at offset at, and calls tell for each find.
func (l *streamMatcher) searchChunk(chunk []byte, at int64, tell func(span)) {
	for i := 0; i < len(chunk); i++ {
		if l.state == 0 && l.parts == 0 && l.grow == 0 {
			n := i
			for n < len(chunk) && l.plain[chunk[n]] {
				n++
			}
			if n > i {
				l.gap = 0
			}
			if i = n; i == len(chunk) {
				return
			}
		}
		l.processByte(chunk[i], at+int64(i), tell)
	}
}

func (l *streamMatcher) processByte(c byte, at int64, tell func(span)) {
	switch {
	case l.parts > 0:
		l.continueEscape(c, at, tell)
	case l.colors && c == 0x1b, l.decodes && (c == '%' || c == '\\'):
		l.part[0], l.parts, l.from, l.esc = c, 1, at, c == 0x1b
	case isControl(c):
		l.skipBytes(1)
	default:
		l.matchByte(c, at, at+1, tell)
	}
}

func (l *streamMatcher) skipBytes(n int) {
	if l.gap += n; l.gap > maxGap {
		l.state = 0
	}
}

// matchByte processes one byte that represents [from, to) of the stream.
func (l *streamMatcher) matchByte(c byte, from, to int64, tell func(span)) {
	l.extendBase64Find(c, to, tell)
	l.gap = 0
	mask := int64(len(l.ring) - 1)
	l.ring[l.seen&mask] = from
	l.seen++
	l.state = l.words.nextState(l.state, c)
	w := l.words.longestWordAt(l.state)
	if w == nil {
		return
	}
	s := span{from: l.ring[(l.seen-int64(len(w.text)))&mask], to: to, word: w}
	tell(s)
	if w.form == "base64" {
		l.tail, l.grow = s, 3
	}
}

// extendBase64Find adds to a find in base64 the padding, and the character that encodes only a part
// of the value.
func (l *streamMatcher) extendBase64Find(c byte, to int64, tell func(span)) {
	if l.grow == 0 {
		return
	}
	if c != '=' && (alphabet[c] == 0 || l.grow < 3) {
		l.grow = 0
		return
	}
	l.grow--
	l.tail.to = to
	tell(l.tail)
}

// continueEscape continues an escape. A complete terminal escape is skipped; of any other, the
// decoded byte is seen. Bytes that turn out not to be an escape are seen unchanged.
func (l *streamMatcher) continueEscape(c byte, at int64, tell func(span)) {
	l.part[l.parts] = c
	l.parts++
	if l.esc {
		switch n := l.parts; {
		case n == 2 && c == '[', n > 2 && c >= ' ' && c < '@' && n < len(l.part):
			return
		case n > 2 && c >= '@' && c <= '~':
			l.parts = 0
			if l.skipBytes(n); l.state == 0 { // perhaps the first letter of a find
				l.matchByte(c, at, at+1, tell)
			}
			return
		}
		l.skipBytes(1)
		l.replayEscape(1, tell)
		return
	}
	b, state := decodeEscape(l.part[:l.parts])
	switch state {
	case unfinished:
	case escape:
		l.parts = 0
		if isControl(b) {
			l.skipBytes(1)
			return
		}
		l.matchByte(b, l.from, at+1, tell)
	default:
		l.matchByte(l.part[0], l.from, l.from+1, tell)
		l.replayEscape(1, tell)
	}
}

// replayEscape processes the bytes of a false escape, except for the first n.
func (l *streamMatcher) replayEscape(n int, tell func(span)) {
	rest, from := l.part, l.from
	count := l.parts
	l.parts = 0
	for i := n; i < count; i++ {
		l.processByte(rest[i], from+int64(i), tell)
	}
}

// endEscape processes the rest of an escape that was never completed.
func (l *streamMatcher) endEscape(tell func(span)) {
	for l.parts > 0 {
		if !l.esc {
			l.matchByte(l.part[0], l.from, l.from+1, tell)
		}
		l.replayEscape(1, tell)
	}
}

// pendingOffset returns the first offset that may belong to an incomplete find of more than least
// letters, or end.
func (l *streamMatcher) pendingOffset(end, least int64) int64 {
	if d := int64(l.words.nodes[l.state].depth); d > least {
		end = min(end, l.ring[(l.seen-d)&int64(len(l.ring)-1)])
	}
	if l.parts > 0 {
		end = min(end, l.from)
	}
	if l.grow > 0 {
		end = min(end, l.tail.from)
	}
	return end
}

const (
	none = iota
	unfinished
	escape
)

var letters1 = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b,
	'"': '"', '\'': '\'', '\\': '\\', '/': '/', '`': '`', '$': '$', ' ': ' '}

// decodeEscape decodes an escape at the beginning of part. \u counts only for characters of
// one byte.
func decodeEscape(part []byte) (byte, int) {
	digits := 2
	start := 1
	if part[0] == '\\' && len(part) > 1 {
		switch part[1] {
		case 'x':
			start = 2
		case 'u':
			start, digits = 2, 4
		default:
			b, ok := letters1[part[1]]
			if !ok {
				return 0, none
			}
			return b, escape
		}
	} else if part[0] == '\\' {
		return 0, unfinished
	}
	n := 0
	for i := start; i < len(part); i++ {
		d := hexDigit(part[i])
		if d < 0 {
			return 0, none
		}
		n = n<<4 | d
	}
	switch {
	case len(part) < start+digits:
		return 0, unfinished
	case n > 0xff || digits == 4 && n > 0x7f:
		return 0, none
	}
	return byte(n), escape
}
