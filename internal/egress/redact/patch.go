// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A patchSide is a file or symlink before or after, with its content or its target.
type patchSide struct {
	*proposal.FileState
	Content []byte
	Hidden  bool // the content is not shown
}

// fileState returns what is known of a side; nil if there is none.
func (s *patchSide) fileState() *proposal.FileState {
	if s == nil {
		return nil
	}
	return s.FileState
}

// patchOf returns the difference of two sides of path, of which one may be nil. Sides that are
// neither a file nor a symlink are left out. It takes time O(n log n).
func patchOf(path string, before, after *patchSide) string {
	before, after = before.comparableSide(), after.comparableSide()
	switch {
	case before == nil && after == nil:
		return ""
	case before != nil && after != nil && before.Type != after.Type:
		return patchSection(path, before, nil) + patchSection(path, nil, after)
	}
	return patchSection(path, before, after)
}

func (s *patchSide) comparableSide() *patchSide {
	if s == nil || s.Type != "file" && s.Type != "symlink" {
		return nil
	}
	return s
}

// gitMode returns the mode of git's trees, which know only whether a file is executable.
func (s *patchSide) gitMode() string {
	switch {
	case s.Type == "symlink":
		return "120000"
	case s.Mode&0o111 != 0:
		return "100755"
	}
	return "100644"
}

func patchSection(path string, before, after *patchSide) string {
	var b strings.Builder
	from, to := quoteName("a/"+path), quoteName("b/"+path)
	fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
	switch {
	case before == nil:
		fmt.Fprintf(&b, "new file mode %s\n", after.gitMode())
		from, before = "/dev/null", &patchSide{Hidden: after.Hidden}
	case after == nil:
		fmt.Fprintf(&b, "deleted file mode %s\n", before.gitMode())
		to, after = "/dev/null", &patchSide{Hidden: before.Hidden}
	case before.gitMode() != after.gitMode():
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", before.gitMode(), after.gitMode())
	}
	if before.Hidden || after.Hidden {
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", from, to)
		return b.String()
	}
	if hunks := hunksOf(before.Content, after.Content); len(hunks) > 0 {
		fmt.Fprintf(&b, "--- %s%s\n+++ %s%s\n%s", from, nameEnd(from), to, nameEnd(to), hunks)
	}
	return b.String()
}

// hunksOf returns the difference without its header of three lines.
func hunksOf(before, after []byte) []byte {
	text := diff.Diff("a", before, "b", after)
	for range 3 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// nameEnd ends a name with a space, as git does for programs that look for a date after it.
func nameEnd(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return "\t"
	}
	return ""
}

// quoteName returns name as git writes it: in double quotes with octal escapes if it has
// characters that are not printable, a quote or a backslash.
func quoteName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name,
		func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
