// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// The maximum length at which one untrusted text is shown, in UTF-16 units.
const (
	shortText = 120
	longText  = 400
)

// codeSpan returns untrusted s as a code span of at most max units, not counting the
// backticks: nothing in it is Markdown, HTML, a mention, a link or a reference.
func codeSpan(s string, max int) string {
	s = text.Inline(s, max)
	if strings.Trim(s, " ") == "" {
		return "`–`"
	}
	ticks := text.Fence(s)
	if !strings.Contains(s, "`") {
		ticks = "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") ||
		strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " " // CommonMark strips one blank from both ends
	}
	return ticks + s + ticks
}

var (
	plainWord = pattern.New(`^[(]?(?:[A-Za-z](?:[A-Za-z'-]*[A-Za-z'])?|[0-9]{1,6})[)]?[,;.:!?]?$`)
	liveWord  = pattern.New(`(?i)\b[a-f]{7,}\b|www\.|\bGH-`) // GitHub could link it as a commit, an address or an issue
)

// escapeProse returns a message of a policy, which may repeat untrusted text: plain words
// are unchanged, all others are code.
func escapeProse(s string) string {
	words := strings.Fields(text.Inline(s, longText))
	var out []string
	for i := 0; i < len(words); {
		if isPlainWord(words[i]) {
			out = append(out, words[i])
			i++
			continue
		}
		from := i
		for i < len(words) && !isPlainWord(words[i]) {
			i++
		}
		piece := strings.Join(words[from:i], " ")
		inner := strings.TrimRight(piece, ",;)")
		if inner == "" {
			inner = piece
		}
		out = append(out, codeSpan(inner, longText)+piece[len(inner):])
	}
	return strings.Join(out, " ")
}

func isPlainWord(word string) bool { return plainWord.MatchString(word) && !liveWord.MatchString(word) }

// endSentence adds a full stop to s.
func endSentence(s string) string {
	if s = strings.TrimRight(s, " ."); s == "" {
		return ""
	}
	return s + "."
}
