// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// headings are the sections of a rendered Document, in order.
var headings = []struct {
	verdict Verdict
	one     string
	many    string
}{
	{Verified, "verified finding", "verified findings"},
	{Flaky, "flaky finding", "flaky findings"},
	{PreExisting, "finding that is older than this pull request", "findings that are older than this pull request"},
	{NotReproduced, "finding not reproduced", "findings not reproduced"},
	{NotRun, "finding whose reproducer did not run", "findings whose reproducer did not run"},
}

// Headline returns the result in one line of plain text.
func (d Document) Headline() string {
	switch n := d.CountVerdict(Verified); {
	case d.Partial:
		return fmt.Sprintf("Incomplete review, %s so far: %s", countNoun(n, "verified finding", "verified findings"),
			d.Reason)
	case !d.Reviewed:
		return "Not reviewed: " + d.Reason
	case len(d.Results) == 0:
		return "The reviewer has no findings"
	case n == 0:
		return fmt.Sprintf("None of %s is verified", countNoun(len(d.Results), "finding", "findings"))
	default:
		return fmt.Sprintf("%s of %d", countNoun(n, "verified finding", "verified findings"), len(d.Results))
	}
}

// Title returns the result in a few words, of which none are the reviewer's.
func (d Document) Title() string {
	switch n := d.CountVerdict(Verified); {
	case n == 0 && !d.Reviewed:
		return "not reviewed"
	case len(d.Results) == 0:
		return "no findings"
	case n == 0:
		return fmt.Sprintf("none of %s is verified", countNoun(len(d.Results), "finding", "findings"))
	default:
		return fmt.Sprintf("%s of %d", countNoun(n, "verified finding", "verified findings"), len(d.Results))
	}
}

func countNoun(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// resultsWith returns the results with a verdict, the most severe first.
func (d Document) resultsWith(v Verdict) (list []Result) {
	for _, r := range d.Results {
		if r.Verdict == v {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Result) int { return severityRank(a) - severityRank(b) })
	return list
}

func severityRank(r Result) int {
	if i := slices.Index(valid.Severities, r.Finding.Severity); i >= 0 {
		return i
	}
	return len(valid.Severities)
}

// RenderText renders d for a terminal. No text of it can control the terminal.
func (d Document) RenderText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s..%s\n", terminal.EscapeLine(d.Headline()), shortenSHA(d.Base), shortenSHA(d.Head))
	for _, h := range headings {
		list := d.resultsWith(h.verdict)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", countNoun(len(list), h.one, h.many))
		for _, r := range list {
			r.writeText(&b)
		}
	}
	b.WriteString("\n")
	if d.Model != nil {
		fmt.Fprintf(&b, "%s\nmodel: log %s\n", terminal.EscapeLine(d.Model.describe()),
			terminal.EscapeLine(d.Model.Log.Log))
		if s := d.Model.Session; s != nil {
			fmt.Fprintf(&b, "commands of the model: run %s, log %s\n", terminal.EscapeLine(s.ID),
				terminal.EscapeLine(s.Log))
		}
	}
	for _, run := range d.Runs {
		fmt.Fprintf(&b, "%s: run %s, log %s\n", terminal.EscapeLine(run.Side), terminal.EscapeLine(run.ID),
			terminal.EscapeLine(run.Log))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r Result) writeText(b *strings.Builder) {
	f := r.Finding
	fmt.Fprintln(b, strings.TrimRight("  "+terminal.EscapeLine(f.ID)+"  "+terminal.EscapeLine(r.placeWithSeverity()),
		" "))
	if f.Claim != "" {
		fmt.Fprintf(b, "    %s\n", terminal.EscapeLine(strings.TrimSpace(f.Claim)))
	}
	fmt.Fprintf(b, "    %s\n", terminal.EscapeLine(r.Why))
	if f.Reproducer != nil {
		fmt.Fprintf(b, "    $ %s\n", terminal.EscapeLine(reproducerText(*f.Reproducer)))
	}
	if r.Suggestion != nil {
		fmt.Fprintf(b, "    suggestion %s\n", terminal.EscapeLine(r.Suggestion.describe()))
	}
}

func (s Suggestion) describe() string {
	if s.Offered {
		return "tried: the reproducer succeeds with it"
	}
	return "not offered: " + s.Why
}

// placeWithSeverity returns file and line, with the severity.
func (r Result) placeWithSeverity() string {
	f := r.Finding
	if f.Invalid != nil {
		return ""
	}
	at := fmt.Sprintf("%s:%d", f.File, f.Line)
	if f.Severity != "" {
		at += " (" + f.Severity + ")"
	}
	return at
}

// reproducerText returns what a reproducer runs, in one text.
func reproducerText(p proposal.Proposal) string {
	if len(p.Argv) > 0 {
		return strings.Join(p.Argv, " ")
	}
	return p.Run + p.Code
}

func shortenSHA(sha string) string { return sha[:min(len(sha), 12)] }

// maxCell is how many characters of a claim the Markdown shows.
const maxCell = 600

// RenderMarkdown renders d as GitHub's Markdown. A claim is shown as plain text, of which everything but plain
// words is in code elements. Other text of the reviewer is shown in code, which nothing in it can end: it
// makes no link, no mention and no HTML.
func (d Document) RenderMarkdown() string { return d.renderCells(SummaryOptions{}, maxCell) }

// renderCells shows cell characters of each text; with 0, only counts.
func (d Document) renderCells(s SummaryOptions, cell int) string {
	var b strings.Builder
	b.WriteString(s.formatHeading(d) + "\n\n")
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "⚠️ %s\n\n", inlineCode(note))
	}
	if len(d.Runs) == 0 {
		fmt.Fprintf(&b, "No reproducer ran on `%s`.\n", shortenSHA(d.Head))
	} else {
		fmt.Fprintf(&b, "Reproducers ran on `%s` and on `%s`, in sandboxes of their own. A verdict says what they did, not that a claim is true.\n", shortenSHA(d.Head), shortenSHA(d.Base))
	}
	s.writeOpen(&b)
	if d.Since != "" {
		fmt.Fprintf(&b, "\nThe commit `%s` was reviewed before: new comments are only on lines that have changed since, and near them.\n", shortenSHA(d.Since))
	}
	if d.Model != nil {
		fmt.Fprintf(&b, "\nThe findings are a model's, which does not decide anything: %s.\n",
			inlineCode(d.Model.describe()))
	}
	for _, h := range headings {
		list := d.resultsWith(h.verdict)
		if len(list) > 0 {
			writeSection(&b, h.verdict == Verified, countNoun(len(list), h.one, h.many), list, s, cell)
		}
	}
	return b.String()
}

// writeSection writes results with one verdict, folded unless they are open.
func writeSection(b *strings.Builder, open bool, title string, list []Result, s SummaryOptions, cell int) {
	switch {
	case cell == 0:
		fmt.Fprintf(b, "\n- %s\n", title)
		return
	case open:
		fmt.Fprintf(b, "\n#### %s\n", title)
	default:
		fmt.Fprintf(b, "\n<details><summary>%s</summary>\n", title)
	}
	for _, r := range list {
		r.writeMarkdown(b, s, cell)
	}
	if !open {
		b.WriteString("\n</details>\n")
	}
}

func (r Result) writeMarkdown(b *strings.Builder, s SummaryOptions, cell int) {
	if url := s.Comments[r.ClaimKey()]; url != "" && r.Verdict == Verified {
		fmt.Fprintf(b, "\n- %s: see the [comment](%s)\n", inlineCode(r.placeWithSeverity()), url)
		return
	}
	fmt.Fprintf(b, "\n- %s %s: %s\n", inlineCode(r.Finding.ID), inlineCode(r.placeWithSeverity()), inlineCode(r.Why))
	if r.Finding.Claim != "" {
		fmt.Fprintf(b, "\n  <p>%s</p>\n\n", report.Prose(text.Inline(r.Finding.Claim, cell), 2*cell))
	}
	if r.Finding.Reproducer != nil {
		writeCodeBlock(b, "sh", text.Inline(reproducerText(*r.Finding.Reproducer), cell))
	}
	if r.Suggestion != nil {
		fmt.Fprintf(b, "  Suggestion %s\n", inlineCode(r.Suggestion.describe()))
	}
}

// writeCodeBlock writes one line as a code block below a list item.
func writeCodeBlock(b *strings.Builder, language, line string) {
	fence := text.Fence(line)
	fmt.Fprintf(b, "  %s%s\n  %s\n  %s\n", fence, language, line, fence)
}

// inlineCode returns s as inline code of one line; "" for an empty s.
func inlineCode(s string) string {
	if s == "" {
		return ""
	}
	line := text.Inline(s, maxCell)
	longest := strings.Trim(text.Fence(line), " ")
	return longest + " " + line + " " + longest
}
