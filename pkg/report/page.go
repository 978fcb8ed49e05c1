// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Page is all that fumehood says about one pull request at one moment: of one
// run, or of several whose plans were a job's matrix.
//
// What stands in a Part's Report may come from anybody. Everything else is the
// caller's word; it is shown as carefully all the same.
type Page struct {
	Parts   []Part
	Notices []Notice
	// Pending says how to approve what policy asked about; nil where nobody can.
	Pending *Pending
	Earlier []Earlier // results that this one replaces, newest first

	Repository string // owner/name that the pull request is made to; links lead nowhere else
	RunURL     string // of the workflow run whose artifact holds the reports
	Artifact   string // its name

	// Staged says that nothing was posted: the page shows what would have been.
	Staged bool
	// Limit is the most UTF-16 units that Markdown and Body may have; MaxComment
	// when 0.
	Limit int
}

// A Part is one plan's run.
type Part struct {
	Name   string // of the matrix leg; "" for a single plan
	Report proposal.Report
	// Audit is what verifying the audit log said, in the caller's words; "" when
	// nobody verified it.
	Audit string
	// Foreign says that a stranger may have written Report: nothing that it says in
	// words then stands outside a code element.
	Foreign bool
	// Decided says that the caller has made the decisions anew from its own policy, so
	// that their words are not the stranger's.
	Decided bool
	// Doubt lists what the caller could not confirm of the report, in its words.
	Doubt []string
}

// A Pending says for which commit an approval is waited for.
type Pending struct {
	Head string // full SHA
}

// An Earlier is one older result, folded away.
type Earlier struct {
	Head  string // full SHA
	Words string // "2 succeeded, 1 failed"
	URL   string // of its workflow run
}

// Markdown returns p as the body of a pull-request comment, Marker included, in at
// most p.Limit units.
func (p Page) Markdown() string {
	head := Marker + "\n\n"
	p.Limit = p.limit() - text.Units(head)
	return head + p.Body()
}

// Body returns what Markdown returns without the Marker, for a comment whose first
// lines somebody else writes.
func (p Page) Body() string { return p.within(p.limit()) }

// MaxSummary is the most bytes that Summary returns. GitHub takes 1 MiB for a step
// and shows nothing of a longer one; the rest is for whoever else writes to it.
const MaxSummary = 1<<20 - 16<<10

// Summary returns what Body says, for a job's step summary: with more room for
// what the commands printed. p.Limit is not heeded.
func (p Page) Summary() string {
	limit := MaxSummary
	for {
		s := p.within(limit)
		if len(s) <= MaxSummary {
			return s
		}
		// A unit has at most three bytes, so a third of the room always suffices.
		limit = max(MaxSummary/3, min(limit-1, limit*(MaxSummary/1024)/(len(s)/1024+1)))
	}
}

func (p Page) limit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return MaxComment
}

// within tries the levels of detail until the fixed parts leave the outputs enough
// room.
func (p Page) within(limit int) string {
	p.Parts = quoteForeign(p.Parts)
	items := p.items(limit)
	for i, l := range levels {
		d := p.compose(items, l)
		room := limit - d.fixed
		if room >= d.least && (room >= min(d.wanted, limit/3) || i == len(levels)-1) {
			return d.fill(room)
		}
	}
	return p.tooLong()
}

// tooLong is what remains when not even the shortest form fits, which only a
// limit far below GitHub's can bring about.
func (p Page) tooLong() string {
	return p.heading() + "\n\nThe rest does not fit here: see the report file.\n"
}

// An item is one record with what is needed to show it.
type item struct {
	proposal.Record
	part    int // index into Page.Parts
	index   int // in its part
	outputs []*output
}

// items lists all records of all parts, in order.
func (p Page) items(limit int) []item {
	var list []item
	for i, part := range p.Parts {
		for j, r := range part.Report.Records {
			list = append(list, item{Record: r, part: i, index: j, outputs: measure(shownResult(part.Report, r), len(list), limit, p.Artifact != "")})
		}
	}
	return list
}

func (p Page) records() []proposal.Record {
	var list []proposal.Record
	for _, part := range p.Parts {
		list = append(list, part.Report.Records...)
	}
	return list
}

// several says whether parts have to be told apart.
func (p Page) several() bool { return len(p.Parts) > 1 }

// label returns the name of a part and a space, as HTML, where there are several.
func (p Page) label(part int) string {
	if !p.several() {
		return ""
	}
	return code(p.Parts[part].Name, 60) + " "
}

// compose lays the page out at one level of detail.
func (p Page) compose(items []item, l level) *doc {
	d := &doc{}
	d.block(p.heading())
	p.preface(d, l)
	p.table(d, items, l)
	p.details(d, items, l)
	p.footers(d, l)
	p.earlier(d, l)
	return d
}

// earlier folds older results into one block.
func (p Page) earlier(d *doc, l level) {
	if len(p.Earlier) == 0 {
		return
	}
	d.block("<details>", "<summary>Earlier results: "+text.Count(int64(len(p.Earlier)))+"</summary>",
		list(p.Earlier, l.list, func(e Earlier) string {
			s := "commit " + commit(e.Head) + ": " + prose(e.Words, l.short+60)
			if run := p.link(e.URL, "run"); run != "" {
				s += " · " + run
			}
			return s
		}))
	d.block("</details>")
}

// commit returns a commit's name as HTML, shortened when it is whole.
func commit(sha string) string {
	if fullSHA.MatchString(sha) {
		sha = sha[:12]
	}
	return code(sha, 64)
}

// short returns the first digits of a digest as HTML.
func short(digest string) string {
	if hex, ok := strings.CutPrefix(digest, "sha256:"); ok && fullSHA.MatchString(hex) {
		digest = hex[:12]
	}
	return code(digest, 80)
}
