// SPDX-License-Identifier: Apache-2.0

package points

import (
	"testing"
	"unicode/utf8"
)

func TestEscapeBytes(t *testing.T) {
	for word, want := range map[string]string{
		"":                 "",
		"café.txt":         "café.txt",
		"\uFFFD":           "\uFFFD",
		"caf\xe9.txt":      "caf\u28e9.txt",
		"\xff-x":           "\u28ff-x",
		"\xe2\xa3":         "\u28e2\u28a3", // a part of a character
		"\u28e9":           "\u28e2\u28a3\u28a9",
		"caf\xe9 \u28e9 é": "caf\u28e9 \u28e2\u28a3\u28a9 é",
		"\xed\xa0\x80":     "\u28ed\u28a0\u2880", // a surrogate
	} {
		if got := EscapeBytes(word); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// unescape is the inverse of EscapeBytes: that there is one shows that no two words have one text.
func unescape(text string) string {
	var word []byte
	for _, r := range text {
		if isEscape(r) {
			word = append(word, byte(r-firstEscape))
		} else {
			word = utf8.AppendRune(word, r)
		}
	}
	return string(word)
}

func FuzzEscapeBytes(f *testing.F) {
	f.Add("caf\xe9 \u28e9 \xe2\xa3\xa9")
	f.Fuzz(func(t *testing.T, word string) {
		text := EscapeBytes(word)
		if !utf8.ValidString(text) || unescape(text) != word {
			t.Errorf("%q: %q, back %q", word, text, unescape(text))
		}
	})
}
