// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// A Tree describes what was written of a commit.
type Tree struct {
	SHA, ID         string // of the commit, and of its tree (or of the directory's)
	Files, Symlinks int
	Bytes           int64
	Left            []Left // in the order of the paths
}

// Left is a path that is missing, or is not as the commit has it.
type Left struct {
	Path   string // untrusted
	Why    Why
	Detail string // untrusted: where a link points, or the name it collides with
}

// Why is the reason why a path is in Left.
type Why string

const (
	// For these, the work tree has a file or directory.
	Submodule Why = "submodule: the directory is empty"
	LargeFile Why = "Git LFS: only the pointer, not the file"
	Collision Why = "differs from another name only in case or Unicode form"

	// For these, the work tree has nothing.
	BadName  Why = "name refused"
	LongName Why = "name or path too long, or nested too deeply"
	BadLink  Why = "symlink refused: it points outside the tree or is ambiguous"
	BadMode  Why = "not a file, symlink, directory or submodule"
)

// isAbsent reports whether the path was not written.
func (w Why) isAbsent() bool { return w != "" && w != Submodule && w != LargeFile && w != Collision }

// describeMax is how many paths Describe names.
const describeMax = 20

// Describe returns what is left out, one line each and safe to print: hostile names are
// made visible and truncated. Only the first 20 are named; the last line counts the rest.
func (t Tree) Describe() []string {
	var lines []string
	for i, left := range t.Left {
		if i == describeMax {
			return append(lines, fmt.Sprintf("and %d more", len(t.Left)-i))
		}
		lines = append(lines, left.String())
	}
	return lines
}

// String returns one line that is safe to print.
func (l Left) String() string {
	line := text.Inline(l.Path, 120) + ": " + string(l.Why)
	if l.Detail != "" {
		line += " (" + text.Inline(l.Detail, 80) + ")"
	}
	return line
}
