// SPDX-License-Identifier: Apache-2.0

//go:build linux

package jobtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
)

var CodeElement = regexp.MustCompile("(?s)<code>.*?</code>")

// RemoveCode removes fenced blocks from Markdown.
func RemoveCode(markdown string) string {
	var b strings.Builder
	for i, part := range strings.Split(markdown, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return CodeElement.ReplaceAllString(b.String(), "")
}

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
