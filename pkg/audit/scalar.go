// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

const hexDigits = "0123456789abcdef"

// writeString copies the string at c.at in its canonical spelling.
func (c *canonicaler) writeString(out []byte) ([]byte, error) {
	c.at++
	out = append(out, '"')
	for c.at < len(c.in) {
		switch b := c.in[c.at]; {
		case b == '"':
			c.at++
			return append(out, '"'), nil
		case b == '\\':
			r, err := c.readEscape()
			if err != nil {
				return nil, err
			}
			out = appendRune(out, r)
		case b < 0x20:
			return nil, c.syntaxError("control character in a string")
		case b < utf8.RuneSelf:
			c.at++
			out = append(out, b)
		default:
			r, size := utf8.DecodeRune(c.in[c.at:])
			if r == utf8.RuneError && size == 1 {
				return nil, c.syntaxError("string is not UTF-8")
			}
			out = append(out, c.in[c.at:c.at+size]...)
			c.at += size
		}
	}
	return nil, c.syntaxError("string does not end")
}

func appendRune(out []byte, r rune) []byte {
	if i := bytes.IndexRune([]byte("\"\\\b\f\n\r\t"), r); i >= 0 {
		return append(out, '\\', `"\bfnrt`[i])
	}
	if r < 0x20 {
		return append(out, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	}
	return utf8.AppendRune(out, r)
}

// readEscape reads one escape sequence, or two that make up a surrogate pair.
func (c *canonicaler) readEscape() (rune, error) {
	if c.at+1 >= len(c.in) {
		return 0, c.syntaxError("string does not end")
	}
	if c.in[c.at+1] != 'u' {
		i := bytes.IndexByte([]byte(`"\/bfnrt`), c.in[c.at+1])
		if i < 0 {
			return 0, c.syntaxError("unknown escape")
		}
		c.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, err := c.readUnit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	low, err := c.readUnit()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, c.syntaxError("lone surrogate")
	}
	return r, nil
}

// readUnit reads \uXXXX.
func (c *canonicaler) readUnit() (rune, error) {
	if c.at+6 > len(c.in) || c.in[c.at] != '\\' || c.in[c.at+1] != 'u' {
		return 0, c.syntaxError("incomplete \\u escape")
	}
	var r rune
	for _, b := range c.in[c.at+2 : c.at+6] {
		i := bytes.IndexByte([]byte(hexDigits), b|0x20)
		if i < 0 || b < '0' {
			return 0, c.syntaxError("incomplete \\u escape")
		}
		r = r<<4 | rune(i)
	}
	c.at += 6
	return r, nil
}

// writeNumber copies the number at c.at as ECMAScript would print it.
func (c *canonicaler) writeNumber(out []byte) ([]byte, error) {
	end := c.at
	for end < len(c.in) && bytes.IndexByte([]byte("+-.0123456789eE"), c.in[end]) >= 0 {
		end++
	}
	token := c.in[c.at:end]
	if n := len(token); n <= 15 && token[0] > '0' && isDigits(token) {
		c.at = end
		return append(out, token...), nil // the usual case, already canonical
	}
	text, ok := canonicalNumber(token)
	if !ok {
		return nil, c.syntaxError("number is malformed or too large")
	}
	c.at = end
	return append(out, text...), nil
}

func isDigits(s []byte) bool {
	for _, b := range s {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(s) > 0
}

var numberGrammar = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// canonicalNumber is Number::toString of ECMAScript for a JSON number, or false
// if the number is malformed, infinite, or an integer that is not exact.
func canonicalNumber(token []byte) (string, bool) {
	f, err := strconv.ParseFloat(string(token), 64)
	if err != nil || !numberGrammar.Match(token) {
		return "", false
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		if !bytes.ContainsAny(token, ".eE") {
			return "", false
		}
		s := strconv.FormatFloat(f, 'e', -1, 64)
		if n := len(s); s[n-2] == '0' && (s[n-3] == '-' || s[n-3] == '+') {
			s = s[:n-2] + s[n-1:] // ECMAScript writes 1e-7 where Go writes 1e-07
		}
		return s, true
	}
	if f == 0 {
		return "0", true // also for -0
	}
	const exact = 1<<53 - 1
	if f == math.Trunc(f) && abs > exact {
		return "", false
	}
	if !bytes.ContainsAny(token, ".eE") && abs > exact {
		return "", false
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}
