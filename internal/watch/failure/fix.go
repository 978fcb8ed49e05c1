// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits of fixes.
const (
	maxFixes    = 200
	maxFixLines = 100 // that are replaced, or replace them
)

// A Fix is a change of some lines of one file that a formatter or a linter printed, as a unified
// difference or as a range. All text in it is untrusted.
type Fix struct {
	File  string
	Start int      // the number of the first line that is replaced, from 1
	Old   []string // the lines that are replaced, without line ends; at least one
	New   []string // what replaces them; none if they are removed
}

// SuggestedFixes returns the changes in the output of a command. Both names of a difference must be those
// of one known file, as gofmt -d, shfmt -d, black --diff, ruff --diff and git diff print them: the
// difference of two files is not a fix of either. rustfmt --check prints one name. ESLint prints
// ranges of the source beside it, as JSON. A stream with a
// secret has none. A caller that applies a Fix compares Old with the file first: output may lie.
func SuggestedFixes(r *proposal.Result, o Options) []Fix {
	if r == nil || o.Tree == nil {
		return nil
	}
	o = o.normalizeCwd()
	var list []Fix
	for _, s := range []proposal.Stream{r.Stdout, r.Stderr} {
		if len(s.Redacted) > 0 {
			continue
		}
		for _, piece := range streamParts(s) {
			list = append(list, o.parseFixes(strings.Split(string(piece), "\n"))...)
			list = append(list, o.jsonFixes(piece)...)
		}
	}
	return list[:min(len(list), maxFixes)]
}

// parseFixes reads the differences in lines.
func (o Options) parseFixes(lines []string) (list []Fix) {
	file := ""
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") {
			file = o.fixedFile(lines[i], lines[i+1])
			i++
			continue
		}
		if m := matchContaining(rustfmtAt, "Diff in ", lines[i]); m != nil {
			end := i + 1
			for end < len(lines) && end <= i+maxBlock && lines[end] != "" &&
				strings.ContainsRune(" +-", rune(lines[end][0])) {
				end++
			}
			if name := o.Tree.Resolve(o.Cwd, m[1]); o.Tree.Has(name) {
				list = append(list, fixesOf(name, parseNumber(m[2]), lines[i+1:end])...)
			}
			i = end - 1
			continue
		}
		m := matchContaining(diffHunk, "@@ ", lines[i])
		if m == nil || file == "" {
			continue
		}
		end, ok := endOfHunk(lines, i+1, hunkCount(m[2]), hunkCount(m[4]))
		if ok {
			list = append(list, fixesOf(file, parseNumber(m[1]), lines[i+1:end])...)
		}
		i = end - 1
	}
	return list
}

// fixedFile returns the file that both names of a difference are of, or "".
func (o Options) fixedFile(minus, plus string) string {
	before, after := diffName.FindStringSubmatch(minus), diffName.FindStringSubmatch(plus)
	if before == nil || after == nil {
		return ""
	}
	name := o.Tree.Resolve(o.Cwd, before[2])
	if name == "" || name != o.Tree.Resolve(o.Cwd, after[2]) || !o.Tree.Has(name) {
		return ""
	}
	return name
}

// hunkCount is the number of lines in the header of a hunk, in which 1 may be left out.
func hunkCount(s string) int {
	if s == "" {
		return 1
	}
	return parseNumber(s)
}

// endOfHunk returns the index after a hunk of so many lines before and after. ok is false if the
// hunk is cut, or has a line without an end.
func endOfHunk(lines []string, i, before, after int) (end int, ok bool) {
	for ; i < len(lines) && before+after > 0; i++ {
		switch {
		case strings.HasPrefix(lines[i], "-"):
			before--
		case strings.HasPrefix(lines[i], "+"):
			after--
		case strings.HasPrefix(lines[i], " "):
			before, after = before-1, after-1
		default:
			return i, false
		}
	}
	return i, before == 0 && after == 0 && (i >= len(lines) || !strings.HasPrefix(lines[i], `\`))
}

// fixesOf returns the changes in a hunk whose first line has the number row before. A change that
// only adds lines replaces the line above them, or below at the beginning of a file.
func fixesOf(file string, row int, lines []string) (list []Fix) {
	for i := 0; i < len(lines); {
		if lines[i][0] == ' ' {
			row, i = row+1, i+1
			continue
		}
		f, first := Fix{File: file, Start: row}, i
		for ; i < len(lines) && lines[i][0] != ' '; i++ {
			if lines[i][0] == '-' {
				f.Old = append(f.Old, lines[i][1:])
			} else {
				f.New = append(f.New, lines[i][1:])
			}
		}
		row += len(f.Old)
		switch {
		case len(f.Old) > 0:
		case first > 0:
			f.Start, f.Old, f.New = f.Start-1, []string{lines[first-1][1:]},
				append([]string{lines[first-1][1:]}, f.New...)
		case i < len(lines):
			f.Old, f.New = []string{lines[i][1:]}, append(f.New, lines[i][1:])
		default:
			continue
		}
		if len(f.Old) <= maxFixLines && len(f.New) <= maxFixLines {
			list = append(list, f)
		}
	}
	return list
}
