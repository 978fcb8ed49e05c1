// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// HoldsWord reports whether text contains word as a separate word.
func HoldsWord(text, word string) bool { return IndexWord(text, word) >= 0 }

// IndexWord finds word in text, without a letter or another character of words next to it.
func IndexWord(text, word string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		if !hasWordEdge(text[:i], true) && !hasWordEdge(text[i+len(word):], false) {
			return i
		}
		from = i + 1
	}
}

// CountWord counts the places where IndexWord finds word.
func CountWord(text, word string) int {
	n := 0
	for i := IndexWord(text, word); i >= 0; i = IndexWord(text, word) {
		n, text = n+1, text[i+len(word):]
	}
	return n
}

// hasWordEdge reports whether text ends, or begins, with a character that may belong to a word.
func hasWordEdge(text string, atEnd bool) bool {
	if text == "" {
		return false
	}
	b := text[0]
	if atEnd {
		b = text[len(text)-1]
	}
	return WordyByte(b)
}

// WordyByte reports whether b may belong to a word.
func WordyByte(b byte) bool {
	return b == '-' || b == '_' || b == '/' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' ||
		b >= 'A' && b <= 'Z' || b >= 0x80
}

// OwnText is the text that the author of p wrote, if a shell reads it, or the text that is
// shown for p.
func OwnText(p proposal.Proposal, a proposal.Analysis) string {
	switch {
	case p.Form() == "run":
		return p.Run
	case p.Form() == "code" && (p.Language == "bash" || p.Language == "sh"):
		return p.ShellText()
	case p.Form() == "argv":
		return a.Canonical
	}
	return ""
}
