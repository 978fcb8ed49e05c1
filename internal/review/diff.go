// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"fmt"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Diff knows the lines on which GitHub accepts comments: those of the hunks of a diff with
// three lines of context, by their number before (base) or after (head).
type Diff struct {
	files map[string]*gitdiff.File // by the name on head; by that on base if it was deleted
	old   map[string]string        // name on base → name on head
}

// ParseDiff reads the output of checkout.Local.Diff.
func ParseDiff(data []byte) (*Diff, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, &proposal.StopError{Code: "review.diff", Message: "cannot read the diff between base and head",
			Err: err}
	}
	d := &Diff{files: map[string]*gitdiff.File{}, old: map[string]string{}}
	for _, f := range files {
		name := f.NewName
		if f.IsDelete {
			name = f.OldName
		}
		d.files[name] = f
		if !f.IsNew && !f.IsCopy {
			d.old[f.OldName] = name
		}
	}
	return d, nil
}

// A Position is where a comment about a finding goes, in GitHub's words.
type Position struct {
	Path      string `json:"path"` // on head, or on base for a deleted file
	Line      int    `json:"line"`
	StartLine int    `json:"start_line,omitempty"` // less than Line
	Side      string `json:"side"`                 // "RIGHT" for head, "LEFT" for base
}

// Position returns where a comment about f goes, or nil and why the diff has no such place.
// A range must lie in one hunk.
func (d *Diff) Position(f proposal.ReviewFinding) (*Position, string) {
	p := &Position{Path: f.File, Line: f.Line, Side: "RIGHT"}
	if f.Side == SideBase {
		p.Side = "LEFT"
		if now, moved := d.old[f.File]; moved {
			p.Path = now
		}
	}
	file := d.files[p.Path]
	switch {
	case file == nil:
		return nil, "the pull request does not change this file"
	case len(file.TextFragments) == 0:
		return nil, "the diff of this file has no lines"
	}
	if f.Start > 0 && f.Start < f.Line {
		p.StartLine = f.Start
	}
	for _, hunk := range file.TextFragments {
		if p.IsWithin(hunkOf(hunk)) {
			return p, ""
		}
	}
	return nil, fmt.Sprintf("line %d is not in the diff", f.Line)
}

// A Hunk is the lines of a file that a diff shows together, by their first number and their count
// before (Old) and after (New).
type Hunk struct{ Old, OldLines, New, NewLines int }

// IsWithin reports whether a hunk has all lines of p. Lines are counted from 1.
func (p *Position) IsWithin(h Hunk) bool {
	first, count := h.New, h.NewLines
	if p.Side == "LEFT" {
		first, count = h.Old, h.OldLines
	}
	start := p.Line
	if p.StartLine > 0 {
		start = p.StartLine
	}
	return start >= max(first, 1) && p.Line < first+count // a side without lines is written as line 0
}

func hunkOf(f *gitdiff.TextFragment) Hunk {
	return Hunk{Old: int(f.OldPosition), OldLines: int(f.OldLines), New: int(f.NewPosition), NewLines: int(f.NewLines)}
}

// Suggestible reports whether a suggestion for f can be applied by GitHub: its lines are those
// of head.
func (p *Position) isSuggestible() bool { return p != nil && p.Side == "RIGHT" }
