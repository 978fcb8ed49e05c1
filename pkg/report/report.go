// SPDX-License-Identifier: Apache-2.0

// Package report gives runs a voice: a Page of Reports becomes the Markdown of a
// pull-request comment, a step summary or a check run; a Report becomes JSON,
// annotations, or a few lines for a terminal. Read takes a Report back from a
// stranger.
//
// It is pure: no I/O, no clock, the same Page gives the same bytes.
//
// The Markdown promises, whatever a proposal, a command's output, a file name or a
// message holds:
//
//   - it has at most 65,536 UTF-16 units, GitHub's limit for a comment, and each
//     command of each plan gets a fair share of them;
//   - every text from elsewhere stands in a code element or a fenced code block
//     that it cannot leave, in the visible form of pkg/internal/text; only words of
//     a policy's message that are plain words stand outside, and of a report that a
//     stranger may have written (Part.Foreign) not even those. So it is no mention,
//     reference, link, image, HTML, comment or Markdown, and no verdict but ours
//     stands in the comment's own voice;
//   - nothing in it but its first line reads as one of fumehood's own HTML comments,
//     by which the parts of a comment are told apart, not even in a fence;
//   - its only links lead to workflow runs of the pull request's own repository;
//   - no line of it is a workflow command, so that it may be printed to a job's log.
//
// Format: the marker comment; a heading that counts; what happened and what to do
// next, the most pressing first; what has to be known before that is believed; the
// commit, the policy's digest and what was enforced; what was not; a table with one
// row a proposal; then one block a proposal (failures first and open, successes
// folded); then folded footers that say how each plan was run and how to verify it,
// and earlier results. When a page is too long, its details shrink in five steps
// before the table is given up; what somebody is asked to approve never does.
//
// It does not protect against what a reader believes: text that a command printed
// is shown as printed, and may lie. Nor does it know whether a report is true: who
// has checked what is the caller's to say, in Part and Notice.
//
// # Why
//
// The comment's own parts are HTML blocks, not Markdown: inside them cmark parses
// nothing, so one escaping rule holds. A Markdown table would need "\|" inside code
// spans, where renderers disagree about a backslash before it; entities in an
// inline code element would still be found by the autolinker. Output stands in
// fences because GitHub gives those a copy button, and they need no escaping.
package report

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Marker is the comment's first line, by which it is found again. It proves
// nothing: anyone can write it.
const Marker = "<!-- fumehood:report -->"

// MaxComment is the most UTF-16 units that GitHub takes as a comment.
const MaxComment = 65536

// Markdown returns r alone as the body of a pull-request comment.
func Markdown(r proposal.Report) string {
	return Page{Parts: []Part{{Report: r}}}.Markdown()
}

// A level says how much detail a comment shows.
type level struct {
	rows    int // of the table
	details int // blocks of proposals that did not succeed
	folded  int // blocks of proposals that did
	short   int // units of a command in a row
	long    int // units of a command or text in its block
	list    int // reasons, files and other lists
	tree    int // lines of a tree of programs
	run     int // enforced and not enforced
	footers int // of parts
}

var levels = []level{
	{rows: 400, details: 400, folded: 400, short: 100, long: 3000, list: 12, tree: 30, run: 20, footers: 20},
	{rows: 300, details: 300, folded: 300, short: 80, long: 600, list: 6, tree: 14, run: 12, footers: 10},
	{rows: 250, details: 120, folded: 40, short: 60, long: 200, list: 3, tree: 6, run: 8, footers: 5},
	{rows: 200, details: 40, folded: 0, short: 40, long: 160, list: 2, tree: 3, run: 6, footers: 2},
	{rows: 60, details: 10, folded: 0, short: 30, long: 100, list: 2, run: 4, footers: 1},
	{rows: 40, details: 6, folded: 0, short: 30, long: 100, list: 1, run: 3, footers: 1},
	{rows: 0, details: 0, folded: 0, short: 30, long: 100, list: 1, run: 2, footers: 0}, // and what waits for approval
}

// A doc is a comment under way: fixed text, and outputs whose length is decided
// when everything else is known.
type doc struct {
	parts  []part
	fixed  int // units of all fixed text
	least  int // units that the outputs take at least
	wanted int // units that the outputs would take whole
	shares shares
}

type part struct {
	fixed  string
	output *output
}

func (d *doc) add(s string) {
	d.parts = append(d.parts, part{fixed: s})
	d.fixed += text.Units(s)
}

// block adds an HTML block or a fence: the blank line after it is what ends it.
func (d *doc) block(lines ...string) {
	d.add(strings.Join(lines, "\n") + "\n\n")
}

func (d *doc) output(o *output) {
	d.parts = append(d.parts, part{output: o})
	d.least += o.least
	d.wanted += o.natural
	d.shares.want(o)
}

// fill gives the outputs their shares of room and writes everything.
func (d *doc) fill(room int) string {
	d.shares.divide(room)
	var b strings.Builder
	for _, p := range d.parts {
		if p.output != nil {
			b.WriteString(p.output.render(p.output.share))
			continue
		}
		b.WriteString(p.fixed)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
