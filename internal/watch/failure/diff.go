// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// diffTool is the Tool of differences, whose messages are made from their values.
const diffTool = "diff"

var (
	diffHunk   = pattern.New(`^@@ -(\d{1,7})(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@`)
	diffName   = pattern.New(`^(---|\+\+\+) (?:[abciw]/)?([^\t]{1,400}?)(?:\.orig)?(?:\t.*)?$`)
	diffNormal = pattern.New(`^(\d{1,7})(?:,\d{1,7})?[acd](\d{1,7})(?:,\d{1,7})?$`)
	diffFiles  = pattern.New(`^(?:Files|Binary files) (.{1,300}) and (.{1,300}) differ$`)
	cmpDiffer  = pattern.New(`^(\S{1,300}) (\S{1,300}) differ: (?:byte|char) \d{1,12}, line (\d{1,9})$`)
	rustfmtAt  = pattern.New(`^Diff in (\S{1,400}?)(?: at line |:)(\d{1,7}):$`)
)

// readDiff reads unified and normal differences: the first line that differs of each file is
// its place, and the lines of the first hunk are its values.
func readDiff(s *scan) {
	old, name := "", ""
	for i := 0; i < len(s.lines); i++ {
		line := s.lines[i]
		if m := matchContaining(diffName, " ", line); m != nil {
			if m[1] == "---" {
				old, name = m[2], ""
			} else {
				name = m[2]
			}
			continue
		}
		if m := matchContaining(diffHunk, "@@", line); m != nil && name != "" {
			i = s.readHunk(i, parseNumber(m[3]), old, name)
			name = "" // the first hunk says it
			continue
		}
		if m := matchContaining(rustfmtAt, "Diff in ", line); m != nil {
			i = s.readHunk(i, parseNumber(m[2]), "", m[1])
			continue
		}
		if diffNormal.MatchString(line) && i+1 < len(s.lines) &&
			(strings.HasPrefix(s.lines[i+1], "< ") || strings.HasPrefix(s.lines[i+1], "> ")) {
			i = s.readNormalDiff(i)
			continue
		}
		if m := matchContaining(cmpDiffer, " differ: ", line); m != nil {
			s.addAt(rankLine, proposal.Diagnostic{Tool: diffTool, Message: line},
				place{name: m[2], row: parseNumber(m[3])})
		} else if m := matchContaining(diffFiles, " differ", line); m != nil {
			s.addReport(rankLine, proposal.Diagnostic{Tool: diffTool, Message: line, File: s.knownFile(m[2])})
		}
	}
}

// readHunk reads a hunk of a unified difference from its first line.
func (s *scan) readHunk(i, row int, old, name string) int {
	var minus, plus []string
	first := 0
	j := i + 1
	for ; j < len(s.lines) && j < i+maxBlock; j++ {
		line := s.lines[j]
		if line == "" {
			row++
			continue
		}
		if line[0] != ' ' && line[0] != '+' && line[0] != '-' && line[0] != '\\' || strings.HasPrefix(line, "--- ") {
			break
		}
		if first == 0 && (line[0] == '+' || line[0] == '-') {
			first = row
		}
		switch line[0] {
		case '-':
			minus = append(minus, strings.TrimSpace(line[1:]))
		case '+':
			plus = append(plus, strings.TrimSpace(line[1:]))
			row++
		case ' ':
			row++
		}
	}
	f := proposal.Diagnostic{Tool: diffTool, Expected: clipText(strings.Join(minus, " ")),
		Actual: clipText(strings.Join(plus, " "))}
	f.Message = diffMessage(minus, plus)
	s.addAt(rankLine, f, place{name: name, row: max(first, 1)})
	if f.File == "" && old != "" && len(s.found) > 0 && s.found[len(s.found)-1].File == "" {
		s.setPlace(&s.found[len(s.found)-1].Diagnostic, place{name: old, row: max(first, 1)})
	}
	return j - 1
}

// readNormalDiff reads a change in the form of diff without options.
func (s *scan) readNormalDiff(i int) int {
	var minus, plus []string
	j := i + 1
	for ; j < len(s.lines) && j < i+maxBlock; j++ {
		line := s.lines[j]
		if rest, ok := strings.CutPrefix(line, "< "); ok {
			minus = append(minus, strings.TrimSpace(rest))
		} else if rest, ok := strings.CutPrefix(line, "> "); ok {
			plus = append(plus, strings.TrimSpace(rest))
		} else if line != "---" && line != "<" && line != ">" {
			break
		}
	}
	s.addReport(rankLine, proposal.Diagnostic{Tool: diffTool, Message: diffMessage(minus, plus),
		Expected: clipText(strings.Join(minus, " ")), Actual: clipText(strings.Join(plus, " "))})
	return j - 1
}

// diffMessage shows the first line on each side.
func diffMessage(minus, plus []string) string {
	var parts []string
	if len(minus) > 0 {
		parts = append(parts, "-"+clipText(minus[0]))
	}
	if len(plus) > 0 {
		parts = append(parts, "+"+clipText(plus[0]))
	}
	return strings.Join(parts, " ")
}
