// SPDX-License-Identifier: Apache-2.0

// Package terminal makes untrusted text safe for a terminal or a CI log.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// Is reports whether w writes to a terminal. A writer that wraps another one has a
// method Unwrap that returns it.
func Is(w io.Writer) bool {
	if wrapper, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = wrapper.Unwrap()
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// WantsColors reports whether w is a terminal whose user wants colors.
func WantsColors(w io.Writer) bool { return Is(w) && os.Getenv("NO_COLOR") == "" }

// Columns returns the width of the terminal that w writes to; 0 if it is none.
func Columns(w io.Writer) int {
	if wrapper, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = wrapper.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// EscapeLine returns s as a part of one line: line breaks and tabs become spaces, and
// everything else that has no ink is escaped.
func EscapeLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// EscapePart is EscapeLine of s, at most max characters, in which no runner finds a workflow command.
func EscapePart(s string, max int) string {
	return truncateText(strings.ReplaceAll(EscapeLine(truncateText(s, max)), "##[", "## ["), max)
}

func truncateText(s string, max int) string {
	n := 0
	for i := range s {
		if n++; n > max {
			return s[:i] + "…"
		}
	}
	return s
}

// QuoteWord is EscapeLine of s, quoted as a shell reads it back, for a command line to copy.
func QuoteWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("./_-:@%+,=", r)
	}) {
		return EscapeLine(s)
	}
	return "'" + strings.ReplaceAll(EscapeLine(s), "'", `'\''`) + "'"
}

// EscapeJSON returns a JSON document in which nothing is hidden and no runner finds a workflow
// command. It means the same.
func EscapeJSON(document []byte) []byte { return text.EscapeJSON(document) }
