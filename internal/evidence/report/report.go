// SPDX-License-Identifier: Apache-2.0

// Package report renders runs. It turns a Page of Reports into the Markdown of a
// pull-request comment, a step summary or a check run, and a Report into JSON,
// annotations, HTML (see Web), SARIF, JUnit, or a few lines for a terminal. Read parses
// an untrusted Report.
//
// Except for Files, Open and SourcesIn it is pure: no I/O, no clock; the same Page gives the
// same bytes.
//
// The Markdown promises, whatever a proposal, a command's output, a file name or a
// message contains:
//
//   - it has at most 65,536 UTF-16 units, GitHub's limit for a comment, and each
//     command of each plan gets a fair share of them;
//   - every text from elsewhere is in a code element or a fenced code block that it
//     cannot leave, in the visible form of internal/kit/text. Only the plain words of
//     a policy's message are outside, and for an untrusted report
//     (Part.Foreign) not even those. So such text cannot be a mention,
//     reference, link, image, HTML, comment or Markdown, and cannot look like
//     fumehood's own verdict;
//   - except for its first line, nothing in it, even in a fence, can be read as one
//     of fumehood's own HTML comments, which delimit the parts of a comment;
//   - its only links lead to workflow runs of the pull request's own repository, and to lines
//     of those files of its commit that the caller lists (Page.Files);
//   - no line of it is a workflow command, so that it may be printed to a job's log.
//
// Format: the marker comment and a heading with a mark and counts, the worst first. If nothing
// needs attention, one fold with everything else. Otherwise: what stopped the run and what to
// do; what to know before reading on; each command that failed, was denied or waits, once,
// with the line that matters, and its output folded; what could not run, and how to fix that;
// what was not enforced; the commit; a fold with the commands that did not run and one with
// those that succeeded; a last fold with programs, statistics, policy, protection and audit
// log. If a page is too long, its details shrink in steps, and commands
// become lines. Commands that a person is asked to approve are never shortened.
//
// It does not protect a reader from false content: text that a command printed is
// shown as printed, and may lie. Nor does it know whether a report is true: the
// caller says what was checked, in Part and Notice.
//
// # Why
//
// The comment's own parts are HTML blocks, not Markdown: cmark parses nothing
// inside them, so a single escaping rule is enough. A Markdown table would need
// "\|" inside code spans, where renderers disagree about a backslash before it; the
// autolinker would still find entities in an inline code element. Output is in
// fences because GitHub gives those a copy button, and they need no escaping.
package report

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Marker is the comment's first line, by which the comment is found again. It
// proves nothing: anyone can write it.
const Marker = "<!-- fumehood:report -->"

// MaxComment is the maximum length of a comment on GitHub, in UTF-16 units.
const MaxComment = config.MaxComment

// Markdown returns r as the body of a pull-request comment.
func Markdown(r proposal.Report) string { return Comment(r, config.Comment{}) }

// Comment is Markdown with a configured detail and length.
func Comment(r proposal.Report, c config.Comment) string {
	return Page{Parts: []Part{{Report: r}}}.Sized(c).Markdown()
}

// A detailLevel is an amount of detail of a comment.
type detailLevel struct {
	rows    int // of the table
	details int // blocks of proposals that did not succeed
	folded  int // blocks of proposals that did
	short   int // units of a command in a row
	long    int // units of a command or text in its block
	list    int // reasons, files and other lists
	tree    int // lines of a tree of programs
	run     int // enforced and not enforced
	footers int // number of parts
}

var levels = []detailLevel{
	{rows: 400, details: 400, folded: 400, short: 100, long: 3000, list: 12, tree: 30, run: 20, footers: 20},
	{rows: 300, details: 300, folded: 300, short: 80, long: 600, list: 6, tree: 14, run: 12, footers: 10},
	{rows: 250, details: 120, folded: 40, short: 60, long: 200, list: 3, tree: 6, run: 8, footers: 5},
	{rows: 200, details: 40, folded: 0, short: 40, long: 160, list: 2, tree: 3, run: 6, footers: 2},
	{rows: 60, details: 10, folded: 0, short: 30, long: 100, list: 2, run: 4, footers: 1},
	{rows: 40, details: 6, folded: 0, short: 30, long: 100, list: 1, run: 3, footers: 1},
	{rows: 0, details: 0, folded: 0, short: 30, long: 100, list: 1, run: 2, footers: 0}, // and commands that wait for approval
}

// A doc is a comment being built: fixed text, and outputs whose length is decided
// when everything else is known.
type doc struct {
	parts  []part
	fixed  int // units of all fixed text
	min    int // minimum units of the outputs
	wanted int // units of the outputs in full
	shares outputShares
}

type part struct {
	fixed  string
	output *output
}

func (d *doc) addText(s string) {
	d.parts = append(d.parts, part{fixed: s})
	d.fixed += text.CountUnits(s)
}

// addBlock adds an HTML block or a fence. The blank line after it ends it.
func (d *doc) addBlock(lines ...string) {
	d.addText(strings.Join(lines, "\n") + "\n\n")
}

func (d *doc) addOutput(o *output) {
	d.parts = append(d.parts, part{output: o})
	d.min += o.min
	d.wanted += o.natural
	d.shares.requestRoom(o)
}

// fillOutputs gives the outputs their shares of room and returns the complete text.
func (d *doc) fillOutputs(room int) string {
	d.shares.divideRoom(room)
	var b strings.Builder
	for _, p := range d.parts {
		if p.output != nil {
			b.WriteString(p.output.renderWithin(p.output.share))
			continue
		}
		b.WriteString(p.fixed)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
