// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A View is how a report is shown to a person at a terminal.
type View struct {
	Color  bool
	Listed bool   // the list of commands is already on the screen
	File   string // the report's file, or ""
	Width  int    // columns of the terminal; 0 for no limit
}

// Units of output that a View shows per stream.
const (
	viewFailed    = 6000
	viewLines     = 40 // of a stream, beside a line that says how many are left out
	viewSucceeded = 1200
)

// minWidth is the smallest width of a terminal that rows are fitted into.
const minWidth = 40

// Render returns r for a terminal: one line per command; then what there is to say about each,
// the most important last: what could not run; denials, each with its reason, what is allowed
// instead and the rule; and what failed, with the lines that matter and its output. Output of a
// success is shown only if it is the only command. Hosts, what to know, and a line with totals
// and where the report and the log are follow.
//
// Text from elsewhere contains no escape sequence, hidden character or workflow command, and
// each line of output is marked, so that it cannot look like a line of fumehood's own.
func (v View) Render(r proposal.Report) string {
	b := &screen{View: v}
	if !v.Listed {
		b.writeList(r.Records)
	}
	for _, kinds := range [][]kind{{succeeded}, {notRun}, {unable, before}, {denied, asked}, {failed, broken}} {
		for _, rec := range r.Records {
			if slices.Contains(kinds, kindOf(rec)) {
				b.writeDetails(r, rec)
			}
		}
	}
	b.writeNetwork(r)
	b.writeNotes(r)
	b.writeTotals(r)
	return b.String()
}

// A screen is a View being written.
type screen struct {
	View
	strings.Builder
}

// Colors, as a terminal's own theme shows them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

// paintText colors s, which must be safe for a terminal.
func (b *screen) paintText(color, s string) string {
	if !b.Color || s == "" || color == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// marks and colors of the outcomes.
var (
	viewMarks = [...]string{failed: "✗", broken: "✗", denied: "⛔", asked: "✋", notRun: "–", unable: "–", before: "–",
		succeeded: "✓"}
	viewColors = [...]string{failed: red, broken: red, denied: red, asked: yellow, notRun: dim, unable: yellow,
		before: yellow, succeeded: green}
)

// outcomeMark returns the mark of r's outcome, two columns wide as terminals show it.
func (b *screen) outcomeMark(r proposal.Record) string {
	k := kindOf(r)
	if k == denied || k == asked { // which are two columns wide
		return b.paintText(viewColors[k], viewMarks[k])
	}
	if k == succeeded && isNotable(r) {
		return b.paintText(yellow, "!") + " "
	}
	return b.paintText(viewColors[k], viewMarks[k]) + " "
}

// writeList writes one line per command.
func (b *screen) writeList(records []proposal.Record) {
	ids, words := 0, 0
	for _, r := range records {
		ids = max(ids, len([]rune(text.Inline(r.Proposal.ID, 24))))
		words = max(words, len([]rune(plainOutcome(r))))
	}
	for _, r := range records {
		row := fmt.Sprintf("%-*s  %-*s", ids, text.Inline(r.Proposal.ID, 24), words, plainOutcome(r))
		command := text.Inline(shortCommand(r), 80)
		if b.Width == 0 || 3+text.CountUnits(row)+2+text.CountUnits(command) <= b.Width {
			fmt.Fprintf(b, "%s %s  %s\n", b.outcomeMark(r), row, b.paintText(dim, command))
			continue
		}
		fmt.Fprintf(b, "%s %s\n", b.outcomeMark(r), strings.TrimRight(row, " "))
		b.writeWrapped("     ", dim, command)
	}
}

// writeWrapped writes a text in lines that begin with indent. Only a word that is longer than a
// line is broken.
func (b *screen) writeWrapped(indent, color, s string) {
	if b.Width == 0 {
		fmt.Fprintf(b, "%s%s\n", indent, b.paintText(color, s))
		return
	}
	room := max(b.Width, minWidth) - text.CountUnits(indent)
	line := ""
	for _, word := range strings.Split(s, " ") {
		if line != "" && text.CountUnits(line)+1+text.CountUnits(word) > room {
			fmt.Fprintf(b, "%s%s\n", indent, b.paintText(color, line))
			line = word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintf(b, "%s%s\n", indent, b.paintText(color, line))
}

// writeDetails writes a block about one command, if there is more to say than its line does.
func (b *screen) writeDetails(r proposal.Report, rec proposal.Record) {
	body := &screen{View: b.View}
	for _, line := range append(plainReason(rec), basePlain(r, rec)...) {
		body.writeWrapped("  ", "", line)
	}
	for _, line := range plainFailures(r, rec) {
		body.writeWrapped("  ", bold, line)
	}
	body.writeAlternatives(rec)
	if r.Withheld == nil && (kindOf(rec) != succeeded || len(r.Records) == 1) {
		body.writeOutput(rec)
	}
	if body.Len() == 0 && kindOf(rec) == succeeded {
		return
	}
	fmt.Fprintf(b, "\n%s %s  %s\n", b.outcomeMark(rec), b.paintText(bold, text.Inline(rec.Proposal.ID, 40)),
		plainOutcome(rec))
	b.writeWrapped("  ", dim, "$ "+text.Inline(shortCommand(rec), 200))
	b.WriteString(body.String())
}

// writeAlternatives writes what policy would allow instead of a refused command.
func (b *screen) writeAlternatives(r proposal.Record) {
	if r.Runnable() {
		return
	}
	for _, reason := range r.Decision.Reasons {
		for _, s := range reason.Alternatives {
			fmt.Fprintf(b, "  allowed: %s\n", b.paintText(bold, text.Inline(s, 200)))
		}
	}
}

// writeOutput writes what the command printed, each line after a bar.
func (b *screen) writeOutput(rec proposal.Record) {
	if rec.Result == nil {
		return
	}
	room := viewFailed
	if kindOf(rec) == succeeded {
		room = viewSucceeded
	}
	for _, s := range []proposal.Stream{rec.Result.Stdout, rec.Result.Stderr} {
		for _, line := range fewLines(text.Excerpt(s.Head, s.Tail, s.Bytes, room)) {
			fmt.Fprintf(b, "  %s %s\n", b.paintText(dim, "│"), strings.TrimSuffix(line, "\n"))
		}
	}
}

// fewLines returns the first and the last lines of shown, more of the last, and how many are left out.
func fewLines(shown text.Block) []string {
	lines := slices.Collect(strings.Lines(shown.Text))
	left := len(lines) - viewLines
	if left <= 0 {
		return lines
	}
	words := "… and " + text.FormatCount(int64(left)) + " more lines, in the report"
	if shown.Omitted > 0 {
		words = "… and more than " + text.FormatCount(int64(left)) + " lines, in the report"
	}
	return slices.Concat(lines[:viewLines/4], []string{words}, lines[viewLines/4+left:])
}

// writeNetwork writes the hosts that commands used, or were refused.
func (b *screen) writeNetwork(r proposal.Report) {
	lines := plainHosts(r)
	if len(lines) > 0 {
		fmt.Fprintln(b)
	}
	for _, line := range lines {
		fmt.Fprintln(b, line)
	}
}

// writeNotes writes what to know about the run as a whole.
func (b *screen) writeNotes(r proposal.Report) {
	var lines []string
	if r.Withheld != nil {
		lines = append(lines, "output not shown: "+text.Inline(r.Withheld.Rule+": "+r.Withheld.Message, 300))
	}
	for _, s := range r.Run.Left {
		lines = append(lines, "not in the workspace: "+text.Inline(s, 200))
	}
	for _, s := range r.Run.Unenforced {
		lines = append(lines, "not enforced: "+text.Inline(s, 500))
	}
	if r.Run.Mode == "observe" {
		lines = append(lines, "observed only: --policy and --granting policies refused nothing")
	}
	if len(lines) > 0 {
		fmt.Fprintln(b)
	}
	for _, line := range lines {
		fmt.Fprintf(b, "%s %s\n", b.paintText(yellow, "!"), line)
	}
}

// writeTotals writes the totals, and where the report and the log are.
func (b *screen) writeTotals(r proposal.Report) {
	if b.Len() > 0 {
		fmt.Fprintln(b)
	}
	what := ""
	switch endOf(r) {
	case endTimeUp:
		what = "out of time: "
	case endCancelled:
		what = "cancelled: "
	case endStopped:
		what = "stopped: "
	}
	fmt.Fprintf(b, "%s in %s", b.paintText(bold, what+tallyRecords(r.Records)), formatMilliseconds(r.Run.WallMS))
	if b.File != "" {
		fmt.Fprintf(b, " · report: %s", text.Inline(b.File, 500))
	}
	if r.Audit != nil {
		fmt.Fprintf(b, " · log: %s", text.Inline(r.Audit.File, 500))
	}
	fmt.Fprintln(b)
}
