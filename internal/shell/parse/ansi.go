// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

var ansiEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiQuoted reads the inside of $'…'. It reports false if the text has a rarely used
// escape that shells read differently, or a NUL, at which bash cuts the string.
func ansiQuoted(text string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) {
			return "", false
		}
		if c, ok := ansiEscapes[text[i]]; ok {
			out.WriteByte(c)
			continue
		}
		value, used := ansiNumber(text[i:])
		if used == 0 || byte(value) == 0 && text[i] != 'u' && text[i] != 'U' || value == 0 {
			return "", false
		}
		if text[i] == 'u' || text[i] == 'U' {
			if !utf8.ValidRune(rune(value)) {
				return "", false
			}
			out.WriteRune(rune(value))
		} else {
			out.WriteByte(byte(value))
		}
		i += used - 1
	}
	return out.String(), utf8.ValidString(out.String())
}

// ansiNumber reads nnn, xHH, uHHHH or UHHHHHHHH and returns its value and length.
func ansiNumber(text string) (value uint64, used int) {
	start, base, maximum := 1, 16, 0
	switch text[0] {
	case 'x':
		maximum = 2
	case 'u':
		maximum = 4
	case 'U':
		maximum = 8
	default:
		start, base, maximum = 0, 8, 3
	}
	end := start
	for end < len(text) && end < start+maximum {
		if _, err := strconv.ParseUint(text[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	value, err := strconv.ParseUint(text[start:end], base, 32)
	if err != nil {
		return 0, 0
	}
	return value, end
}
