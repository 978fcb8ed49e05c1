// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxMatters is the maximum number of lines that are shown above the fold of one command.
const maxMatters = 3

// keyLines returns the lines for which a reader looks first, as HTML: the refused rule, or
// the assertion that failed.
func (p Page) keyLines(it item, l detailLevel) []string {
	r := it.Record
	lines := firstReason(r, l)
	if isUnmet(r) {
		lines = append(lines, "⚠️ <b>not as expected:</b> "+formatCode(r.Proposal.Expect, l.long))
	}
	if unexpectedSuccess(r) {
		lines = append(lines, "expected: "+formatCode(r.Proposal.Expect, l.long))
	}
	if words := codeWords(r); words != "" {
		lines = append(lines, words)
	}
	if h, found := findHidden(r); found {
		lines = append(lines, "⚠️ <b>hidden failure:</b> "+
			h.describeExit(func(s string) string { return formatCode(s, 60) }))
		lines = append(lines, p.shownFailures(it, l)...)
	}
	if r.Result != nil && kindOf(r) != succeeded {
		if r.Result.Detail != "" {
			lines = append(lines, formatProse(r.Result.Detail, l.long))
		}
		if words := limitAdvice(r); words != "" {
			lines = append(lines, formatBackticks(words))
		}
		lines = append(lines, p.shownFailures(it, l)...)
	}
	if words := baseHTML(p.Parts[it.part].Report, r, l); words != "" {
		lines = append(lines, words)
	}
	if words := oldToolchain(p.Parts[it.part].Report, r); words != "" {
		lines = append(lines, formatProse(words, maxReason))
	}
	return lines
}

// firstReason returns why r was refused, and what would be allowed.
func firstReason(r proposal.Record, l detailLevel) []string {
	if r.Runnable() {
		return nil
	}
	if reason, ok := firstRefusal(r); ok {
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

// failureCauses returns what a failed command reports as the cause, only the new if some of it is known
// from the base, or else the line of its output that is shown for it. Everything in them is untrusted.
func (p Page) failureCauses(r proposal.Report, rec proposal.Record) (list []proposal.Diagnostic, last string) {
	result := shownResult(r, rec)
	if !isRed(rec) {
		if hidesFailure(rec) {
			list = failuresOf(r, rec, p.tree)
		}
		return list, ""
	}
	if list = p.onlyNew(r, rec, failuresOf(r, rec, p.tree)); len(list) == 0 {
		last = failure.LastLineOf(result)
	}
	return list, last
}

// isRed reports whether the output of a command says why it failed.
func isRed(rec proposal.Record) bool {
	k := kindOf(rec)
	return (k == failed || k == broken) && rec.Result != nil && !rec.Result.Succeeded()
}

// failuresOf reads the output of a record whose streams are shown.
func failuresOf(r proposal.Report, rec proposal.Record, tree *failure.Tree) []proposal.Diagnostic {
	return failure.CauseReports(shownResult(r, rec),
		failure.Options{Cwd: path.Join(r.Run.Cwd, rec.Proposal.Cwd), Tree: tree, GoModules: r.Run.GoModules})
}

// shownFailures shows what failing found.
func (p Page) shownFailures(it item, l detailLevel) []string {
	if it.last != "" {
		return []string{formatCode(it.last, min(l.long, 300))}
	}
	var lines []string
	for _, d := range it.found[:min(len(it.found), maxMatters, max(1, l.list/2))] {
		line := formatCode(failure.FormatLine(d), min(l.long, 300))
		if d.File != "" {
			line = p.lineLink(d.File, d.Line, l) + ": " + line
		}
		if test, ok := testFrame(d); ok {
			line += ", tested at " + p.lineLink(test.File, test.Line, l)
		}
		lines = append(lines, line)
	}
	if more := len(it.found) - len(lines); more > 0 {
		lines[len(lines)-1] += fmt.Sprintf(" and %d more", more)
	}
	return lines
}

// plainFailures is shownFailures for a terminal.
func plainFailures(r proposal.Report, rec proposal.Record) []string {
	list, last := Page{}.failureCauses(r, rec)
	if last != "" {
		return []string{text.Inline(last, 300)}
	}
	var lines []string
	for _, d := range list[:min(len(list), maxMatters)] {
		line := text.Inline(failure.FormatLine(d), 300)
		if d.File != "" {
			line = text.Inline(placeWords(d.File, d.Line), 300) + ": " + line
		}
		lines = append(lines, line)
	}
	if more := len(list) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// placeWords returns a place as a text.
func placeWords(file string, row int) string {
	if row == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(row)
}

// testFrame returns the line of the test, if that is in another file than the failure: the
// outermost line of the stack.
func testFrame(d proposal.Diagnostic) (f proposal.Frame, ok bool) {
	if d.Test == "" || len(d.Frames) < 2 {
		return f, false
	}
	f = d.Frames[len(d.Frames)-1]
	return f, f.File != d.File
}

// linkedPath is the grammar of the paths to which links lead.
var linkedPath = pattern.New(`^[A-Za-z0-9_@+ ./~()\[\]{}=,-]{1,300}$`)

// lineLink returns a place: a link to the line of the commit, if the file is one of p.Files,
// or else a text.
func (p Page) lineLink(file string, row int, l detailLevel) string {
	place, anchor := formatCode(placeWords(file, row), l.short+60), ""
	if row > 0 {
		anchor = "#L" + strconv.Itoa(row)
	}
	own := runURL.FindStringSubmatch(p.RunURL)
	if own == nil || !strings.EqualFold(own[2], p.Repository) || !fullSHA.MatchString(p.Head) || !p.tree.Has(file) ||
		!linkedPath.MatchString(file) {
		return place
	}
	u := url.URL{Path: "/" + p.Repository + "/blob/" + p.Head + "/" + file}
	return `<a href="` + own[1] + u.EscapedPath() + anchor + `">` + place + "</a>"
}
