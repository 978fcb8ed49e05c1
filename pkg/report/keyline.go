// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxMatters is the maximum number of lines that are shown above the fold of one command.
const maxMatters = 3

// How much of a piece of output is searched for what failed, in bytes: a page is made of many.
const (
	maxEnds     = 48 << 10 // of its beginning, and of its end, for assertions
	maxSearched = 16 << 10 // of its end, for a line that looks like a cause
)

// ends returns the beginning and the end of a piece, in whole lines except for the outer ones.
func ends(piece []byte) [][]byte {
	if len(piece) <= 2*maxEnds {
		return [][]byte{piece}
	}
	first, last := piece[:maxEnds], piece[len(piece)-maxEnds:]
	return [][]byte{first[:bytes.LastIndexByte(first, '\n')+1], last[bytes.IndexByte(last, '\n')+1:]}
}

// matters returns the lines for which a reader looks first, as HTML: the refused rule, or
// the assertion that failed.
func (p Page) matters(it item, l level) []string {
	r := it.Record
	lines := firstReason(r, l)
	if unmet(r) {
		lines = append(lines, "⚠️ <b>not as expected:</b> "+code(r.Proposal.Expect, l.long))
	}
	if unexpectedSuccess(r) {
		lines = append(lines, "expected: "+code(r.Proposal.Expect, l.long))
	}
	if r.Result != nil && kindOf(r) != succeeded {
		if r.Result.Detail != "" {
			lines = append(lines, prose(r.Result.Detail, l.long))
		}
		if words := advice(r); words != "" {
			lines = append(lines, backticks(words))
		}
		lines = append(lines, p.shownFailures(it, l)...)
	}
	if words := baseWords(p.Parts[it.part].Report, r, func(s string) string { return code(s, l.short+60) }); words != "" {
		lines = append(lines, words)
	}
	return lines
}

// firstReason returns why r was refused, and what would be allowed.
func firstReason(r proposal.Record, l level) []string {
	if r.Runnable() {
		return nil
	}
	if reason, ok := refusal(r); ok {
		reason.Rule = "" // the headline has it
		if reason.Text == shortCommand(r) {
			reason.Text = ""
		}
		return []string{reasonWords(reason, l)}
	}
	for _, u := range r.Analysis.Unknowns {
		return []string{unknownWords(r, u, l)}
	}
	return nil
}

// failing returns the assertions that a failed command reports, or else the line of its
// output that looks most like the cause. Everything in them is untrusted.
func (p Page) failing(r proposal.Report, rec proposal.Record) (list []Annotation, last string) {
	result := shownResult(r, rec)
	if k := kindOf(rec); result == nil || k != failed && k != broken || unexpectedSuccess(rec) {
		return nil, ""
	}
	found := &finds{tree: p.tree, seen: map[Annotation]bool{}}
	for _, s := range []proposal.Stream{result.Stdout, result.Stderr} {
		for _, piece := range pieces(s) {
			for _, end := range ends(piece) {
				scan(found, rec, path.Join(r.Run.Cwd, rec.Proposal.Cwd), end)
			}
		}
	}
	if list = found.worst(); len(list) > 0 {
		return list, ""
	}
	return nil, lastWords(result)
}

// shownFailures shows what failing found.
func (p Page) shownFailures(it item, l level) []string {
	if it.last != "" {
		return []string{code(it.last, min(l.long, 300))}
	}
	var lines []string
	for _, a := range it.found[:min(len(it.found), maxMatters, max(1, l.list/2))] {
		lines = append(lines, p.lineLink(a, l)+": "+code(a.Message, min(l.long, 300)))
	}
	if more := len(it.found) - len(lines); more > 0 {
		lines[len(lines)-1] += fmt.Sprintf(" and %d more", more)
	}
	return lines
}

// worst returns the annotations of the worst level that was found.
func (f *finds) worst() []Annotation {
	for _, level := range levelWords {
		if list := slices.DeleteFunc(slices.Clone(f.list), func(a Annotation) bool { return a.Level != level }); len(list) > 0 {
			return list
		}
	}
	return nil
}

// Words of lines that name a cause, and of those that only say that there is one.
var causes = []*pattern.Pattern{
	pattern.New(`(?i)\bassert|\bexpected\b|^E\s|\bpanic|\w(?:Error|Exception)\b|\berror(?:\[\w+\])?:|\bfatal\b|segmentation fault`),
	pattern.New(`(?i)\berrors?\b|\bfail(?:ed|ure)?\b|\bcannot\b|\bnot ok\b|\bnot found\b`),
}

// lastWords returns the first line of a failed command's output that names a cause, or else
// its last line.
func lastWords(r *proposal.Result) string {
	var lines []string
	for _, s := range []proposal.Stream{r.Stderr, r.Stdout} {
		for _, piece := range pieces(s) {
			for line := range bytes.Lines(piece[max(0, len(piece)-maxSearched):]) {
				if line = bytes.TrimSpace(colours.ReplaceAll(line[:min(len(line), maxLine)], nil)); len(line) > 0 {
					lines = append(lines, string(line))
				}
			}
		}
	}
	for _, words := range causes {
		if i := slices.IndexFunc(lines, words.MatchString); i >= 0 {
			return lines[i]
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// linkedPath is the grammar of the paths to which links lead.
var linkedPath = pattern.New(`^[A-Za-z0-9_@+ ./~()\[\]{}=,-]{1,300}$`)

// lineLink returns the place of an annotation: a link to the line of the commit, if its file
// is one of p.Files, or else a text.
func (p Page) lineLink(a Annotation, l level) string {
	place := code(a.Path+":"+strconv.Itoa(a.Line), l.short+60)
	own := runURL.FindStringSubmatch(p.RunURL)
	if own == nil || !strings.EqualFold(own[2], p.Repository) || !fullSHA.MatchString(p.Head) || !p.tree.files[a.Path] || !linkedPath.MatchString(a.Path) {
		return place
	}
	u := url.URL{Path: "/" + p.Repository + "/blob/" + p.Head + "/" + a.Path}
	return `<a href="` + own[1] + u.EscapedPath() + "#L" + strconv.Itoa(a.Line) + `">` + place + "</a>"
}
