// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/redaction"
)

const (
	// MinMask is the minimum length of a masked value: shorter ones also match unrelated text.
	MinMask = 6
	// MaxMask is the maximum length of a masked value.
	MaxMask = 64 << 10
	// MaxMasks is the maximum number of masks.
	MaxMasks = 100
	// MaxMasked is the maximum of their total bytes, with separate lines counted again:
	// the forms of each value need more than a thousand times its memory.
	MaxMasked = 192 << 10

	minLine     = 8   // minimum length of a line of a multi-line value that is masked separately
	minRest     = 16  // minimum rest of a value without its first part
	pieceLength = 512 // length of the pieces by which a long value is found
)

// A Mask is a value that must never appear.
type Mask struct {
	Name  string // replaces the value in reports
	Value string
}

// ruleName returns the name under which finds of m are counted.
func (m Mask) ruleName() string { return redaction.MaskPrefix + m.Name }

// checkMask reports what is wrong with m, without quoting its value.
func (m Mask) checkMask() error {
	switch n := len(strings.TrimSpace(m.Value)); {
	case n < MinMask:
		return fmt.Errorf("the value of %s has fewer than %d bytes: it would match ordinary text", m.Name, MinMask)
	case n > MaxMask:
		return fmt.Errorf("the value of %s has more than %d bytes", m.Name, MaxMask)
	}
	return nil
}

// searchedValues returns the texts to search for: the whole value, each of its lines that is long
// enough, and what follows the first parts of a token ("ghp_").
func (m Mask) searchedValues() []string {
	whole := strings.TrimSpace(m.Value)
	list := splitValue(removeSkippedChars(whole))
	for line := range strings.Lines(whole) {
		if line = removeSkippedChars(strings.TrimSpace(line)); len(line) >= minLine &&
			!strings.HasPrefix(line, "-----") {
			list = append(list, splitValue(line)...)
		}
	}
	rest := whole
	for range 3 {
		i := strings.IndexAny(rest, "_-.: ")
		if i < 0 || len(rest)-i-1 < minRest {
			break
		}
		rest = rest[i+1:]
		if list = append(list, splitValue(removeSkippedChars(rest))...); len(rest) >= 2*pieceLength {
			break
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// removeSkippedChars returns text as the lens that skips characters sees it. The text need not be UTF-8.
func removeSkippedChars(text string) string {
	return string(slices.DeleteFunc([]byte(text), isControl))
}

// splitValue cuts a long value, so that the memory for its forms is bounded.
func splitValue(value string) []string {
	var list []string
	for len(value) >= 2*pieceLength {
		list, value = append(list, value[:pieceLength]), value[pieceLength:]
	}
	if len(value) >= MinMask {
		list = append(list, value)
	}
	return list
}

// printedForms returns the forms in which tools print value.
func printedForms(value string) []word {
	list := []word{{text: value, form: "plain"}, {text: reverseBytes(value), form: "reversed"},
		{text: reverseRunes(value), form: "reversed"}, {text: rot13(value), form: "rot13"}}
	add := func(form string, texts ...string) {
		for _, text := range texts {
			list = append(list, word{text: text, form: form})
		}
	}
	add("case", swapCase(value, 'A', 'Z'), swapCase(value, 'a', 'z'))
	for offset := range 3 {
		add("base64", base64Core(base64.RawStdEncoding, value, offset),
			base64Core(base64.RawURLEncoding, value, offset))
	}
	small := hex.EncodeToString([]byte(value))
	for _, digits := range []string{small, strings.ToUpper(small)} {
		add("hex", digits, separateHexBytes(digits, " "), separateHexBytes(digits, ":"), separateHexBytes(digits, `\x`),
			separateHexBytes(digits, ", 0x"), separateHexBytes(digits, ",0x"))
		add("url", separateHexBytes(digits, "%"))
	}
	add("url", url.QueryEscape(value), url.PathEscape(value))
	if len(strings.ToValidUTF8(value, "")) >= MinMask { // all invalid bytes look the same
		add("json", quoteJSON(value, true), quoteJSON(value, false), string([]rune(value)))
	}
	ascii := strconv.QuoteToASCII(value)
	add("json", ascii[1:len(ascii)-1])
	add("html", html.EscapeString(value))
	return list
}

// base64Core returns the base64 characters that depend only on value, at the given offset in a text.
func base64Core(encoding *base64.Encoding, value string, offset int) string {
	text := encoding.EncodeToString([]byte(strings.Repeat("x", offset) + value))
	return text[(8*offset+5)/6 : 8*(offset+len(value))/6]
}

func reverseBytes(value string) string {
	b := []byte(value)
	slices.Reverse(b)
	return string(b)
}

// reverseRunes returns value with its characters reversed.
func reverseRunes(value string) string {
	var b strings.Builder
	for end := len(value); end > 0; {
		_, size := utf8.DecodeLastRuneInString(value[:end])
		b.WriteString(value[end-size : end])
		end -= size
	}
	return b.String()
}

func rot13(value string) string {
	b := []byte(value)
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			b[i] = 'a' + (c-'a'+13)%26
		case 'A' <= c && c <= 'Z':
			b[i] = 'A' + (c-'A'+13)%26
		}
	}
	return string(b)
}

// swapCase returns value with the letters from first to last in the other case, as in host
// names and variable names.
func swapCase(value string, first, last byte) string {
	b := []byte(value)
	for i, c := range b {
		if first <= c && c <= last {
			b[i] = c ^ ' '
		}
	}
	return string(b)
}

// separateHexBytes puts mark between the bytes of hexadecimal digits.
func separateHexBytes(digits, mark string) string {
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		if i > 0 || mark == "%" || mark == `\x` {
			b.WriteString(mark)
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}

// quoteJSON returns value inside a JSON string.
func quoteJSON(value string, escapeHTML bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(value) // a string can always be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// marker is the beginning of every marker.
const marker = "[redacted "

// ForgedMarker is the rule of a marker that a command printed itself: its bracket is
// changed, so that every remaining marker is ours.
const ForgedMarker = "forged-marker"

// newWords returns all forms of all masks.
func newWords(masks []Mask) ([]word, error) {
	var words []word
	room := MaxMasked
	for i, m := range masks {
		values := m.searchedValues()
		for _, value := range values {
			room -= len(value)
		}
		if room < 0 {
			return nil, fmt.Errorf("the values to mask have more than %d bytes together", MaxMasked)
		}
		whole := strings.TrimSpace(m.Value)
		if strings.ContainsAny(whole, "\r\n\t") { // escaped, its lines belong together
			words = append(words, word{text: quoteJSON(whole, false), value: i, form: "json"},
				word{text: quoteJSON(whole, true), value: i, form: "json"})
			for _, w := range printedForms(whole) {
				if w.form == "base64" || w.form == "hex" || w.form == "url" {
					words = append(words, word{text: w.text, value: i, form: w.form})
				}
			}
		}
		for _, value := range values {
			for _, w := range printedForms(value) {
				if len(w.text) >= MinMask {
					w.value = i
					words = append(words, w)
				}
			}
		}
	}
	return slices.DeleteFunc(words, func(w word) bool { return len(w.text) > 8*pieceLength }), nil
}
