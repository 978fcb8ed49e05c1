// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits, checked before the parser sees the text: it is a recursive descent parser
// without a depth limit, and a Go stack overflow cannot be recovered.
const (
	maxText     = 16 << 10 // bytes of shell text
	maxArgv     = 64 << 10 // bytes of an argv or a non-shell snippet
	maxOpenings = 4096     // things that could make the parser recurse, whether or not they do
	maxDepth    = 64       // levels in the syntax tree
	maxLevels   = 8        // nested wrappers and substitutions
	maxCommands = 256
	maxBraces   = 256 // words out of one brace expansion
)

// checkText applies the limits to shell text.
func checkText(text string) (proposal.Unknown, bool) {
	if len(text) > maxText {
		return unknownLong.unknownAt(wholeSpan("")), false
	}
	if finding, ok := checkCharacters(text); !ok {
		return finding, false
	}
	if countOpenings(text) > maxOpenings {
		return unknownDeep.unknownAt(wholeSpan(text)), false
	}
	return proposal.Unknown{}, true
}

// checkArgv applies the limits that make sense without a shell.
func checkArgv(argv []string) (proposal.Unknown, bool) {
	size := 0
	for _, word := range argv {
		size += len(word) + 1
		if finding, ok := checkCharacters(word); !ok {
			finding.Span = proposal.Span{Line: 1, Col: 1}
			return finding, false
		}
	}
	if size > maxArgv {
		return unknownLong.unknownAt(wholeSpan("")), false
	}
	return proposal.Unknown{}, true
}

func checkCharacters(text string) (proposal.Unknown, bool) {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if (c < ' ' && c != '\n' && c != '\t') || c == 0x7f {
				return unknownControl.unknownAt(spanIn(text, i, i+1)), false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return unknownUTF8.unknownAt(spanIn(text, i, i+1)), false
		}
		if isInvisible(r) {
			return unknownBlank.unknownAt(spanIn(text, i, i+size)), false
		}
		i += size
	}
	return proposal.Unknown{}, true
}

// isInvisible reports whether r looks like nothing or like a space, or changes the
// display order of its neighbors.
func isInvisible(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co) ||
		!unicode.IsGraphic(r)
}

// countOpenings counts everything in text that could make the parser recurse, quoted or
// not. It never subtracts, so it is an upper bound that no text can evade.
func countOpenings(text string) int {
	count := 0
	before := byte(' ') // the last byte that was not blank
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case '(', '{', '[', '`', '"', '!', '~', '&', '|', '?', '=':
			count++
		case '-', '+', '*':
			if strings.IndexByte("-+*!~=<>?:&|^%/,(", before) >= 0 {
				count++
			}
		case ' ', '\t', '\n':
			continue
		default:
			if 'a' <= c && c <= 'z' && (i == 0 || !nameByte(text[i-1])) && nests[wordAt(text[i:])] {
				count++
			}
		}
		before = c
	}
	return count
}

var nests = map[string]bool{
	"if": true, "elif": true, "else": true, "then": true, "while": true, "until": true, "for": true, "select": true,
	"case": true, "do": true, "function": true, "time": true, "coproc": true, "in": true,
}

func wordAt(text string) string {
	end := 0
	for end < len(text) && end < 9 && nameByte(text[end]) {
		end++
	}
	return text[:end]
}

// nameBytes are the bytes of names.
const nameBytes = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func nameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// spanIn returns the Span of text[start:end].
func spanIn(text string, start, end int) proposal.Span {
	line := 1 + strings.Count(text[:start], "\n")
	col := start - strings.LastIndexByte(text[:start], '\n')
	return proposal.Span{Start: start, End: end, Line: line, Col: col}
}
