// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"go test\t./...":  "go test ./...",
		"a\nb\r":          `a b\u000d`,
		"\x1b[2J\u202eé":  `\u001b[2J\u202eé`,
		"tag \U000e0041.": `tag \ue0041.`,
	} {
		if got := EscapeLine(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

// No part of a line is longer than it may be, or a workflow command.
func TestPart(t *testing.T) {
	for in, want := range map[string]string{
		"short":              "short",
		"##[error]x":         "## [error]…",
		"twelve letters":     "twelve let…",
		"ééééééééééé":        "éééééééééé…",
		"\u202e\u202e\u202e": `\u202e\u20…`,
	} {
		if got := EscapePart(in, 10); got != want {
			t.Errorf("Part(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a/b-c": "a/b-c", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := QuoteWord(in); got != want {
			t.Errorf("Word(%q) = %q, want %q", in, got, want)
		}
	}
}

type wrapper struct{ io.Writer }

func (w wrapper) Unwrap() io.Writer { return w.Writer }

func TestIs(t *testing.T) {
	if Is(&bytes.Buffer{}) || Is(wrapper{&strings.Builder{}}) {
		t.Error("a buffer is taken for a terminal")
	}
}
