// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A webDifference is how a run left one file.
type webDifference struct {
	proposal.Difference
	Added, Removed int // lines
	Parts          []webPart
}

// A webPart is adjacent lines of one kind: "ins", "del", or "" for all others.
type webPart struct{ Kind, Text string }

// webDifferences returns the report's differences, with maxWebDiffs units of text, and how
// many more there are.
func webDifferences(r proposal.Report) (list []webDifference, more int) {
	if r.Differences == nil {
		return nil, 0
	}
	files, room := r.Differences.Files, maxWebDiffs
	more = r.Differences.Omitted + max(0, len(files)-maxWebList)
	for _, f := range files[:min(len(files), maxWebList)] {
		switch {
		case r.Withheld != nil:
			f.Text, f.Note = "", "withheld by policy"
		case text.CountUnits(f.Text) > room:
			f.Text, f.Note = "", "left out: the page is full"
		}
		d := webDifference{Difference: f}
		d.splitDiff(visibleText(f.Text))
		room -= text.CountUnits(f.Text)
		list = append(list, d)
	}
	return list, more
}

// splitDiff divides a difference in the format of git. Only lines of a hunk, whose first character
// says so, were added or removed: a file's lines can look like those of a header.
func (d *webDifference) splitDiff(difference string) {
	hunk := false
	for line := range strings.Lines(difference) {
		kind := ""
		switch {
		case strings.HasPrefix(line, "@@"):
			hunk = true
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "# "):
			hunk = false
		case hunk && line[0] == '+':
			kind = "ins"
			d.Added++
		case hunk && line[0] == '-':
			kind = "del"
			d.Removed++
		}
		if n := len(d.Parts); n > 0 && d.Parts[n-1].Kind == kind {
			d.Parts[n-1].Text += line
			continue
		}
		d.Parts = append(d.Parts, webPart{kind, line})
	}
}
