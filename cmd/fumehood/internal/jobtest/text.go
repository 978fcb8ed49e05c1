// SPDX-License-Identifier: Apache-2.0

package jobtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
)

var codeElement = regexp.MustCompile("(?s)<code>.*?</code>")

// RemoveCode returns Markdown without its fenced blocks, code spans and code elements, which show text as
// it is. See CommonMark, sections 4.5 and 6.1.
func RemoveCode(markdown string) string {
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(markdown) {
		ticks := leadingBackticks(line)
		switch {
		case fence == "" && len(ticks) >= 3 && !strings.Contains(line[len(ticks):], "`"):
			fence = ticks
		case fence != "" && len(ticks) >= len(fence) && strings.TrimSpace(line) == ticks:
			fence = ""
		case fence == "":
			out.WriteString(line)
		}
	}
	return codeElement.ReplaceAllString(removeCodeSpans(out.String()), "")
}

func leadingBackticks(text string) string { return text[:len(text)-len(strings.TrimLeft(text, "`"))] }

// removeCodeSpans removes what is between two equal runs of backticks, with them.
func removeCodeSpans(text string) string {
	var out strings.Builder
	for {
		start := strings.IndexByte(text, '`')
		if start < 0 {
			return out.String() + text
		}
		out.WriteString(text[:start])
		ticks := leadingBackticks(text[start:])
		text = text[start+len(ticks):]
		for end := 0; ; {
			next := strings.IndexByte(text[end:], '`')
			if next < 0 {
				out.WriteString(ticks) // they are text
				break
			}
			end += next
			run := leadingBackticks(text[end:])
			if end += len(run); run == ticks {
				text = text[end:]
				break
			}
		}
	}
}

// ListReactions returns the reactions to a comment, with spaces between them.
func ListReactions(gh *githubtest.Server, comment int64) string {
	var list []string
	for _, r := range gh.Reactions(comment) {
		list = append(list, r.Content)
	}
	return strings.Join(list, " ")
}

// CheckContains fails if text lacks one of the pieces.
func CheckContains(t testing.TB, what, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// CheckLacks fails if text has one of the pieces.
func CheckLacks(t testing.TB, what, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if strings.Contains(text, p) {
			t.Errorf("%s has %q:\n%s", what, p, text)
		}
	}
}
