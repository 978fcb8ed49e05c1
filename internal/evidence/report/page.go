// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Page is the complete content about one pull request at one moment: of one run,
// or of several runs of a job's matrix.
//
// The content of a Part's Report is untrusted. Everything else comes from the
// caller; it is escaped just as carefully.
type Page struct {
	Parts   []Part
	Notices []Notice
	// Pending is what to approve, or nil if nothing can be approved.
	Pending *Pending

	Repository string // owner/name of the pull request's base; links lead nowhere else
	RunURL     string // of the workflow run whose artifact holds the reports
	Artifact   string // its name
	PolicyFrom string // the branches and commits that the repository's own rules were read at; "" if unknown

	// Head is the full SHA of the commit, and Files are paths of files in it, for links to
	// lines. Both must be trusted: output can choose the path and the line of a link, but
	// no other target. Without them there are no such links.
	Head  string
	Files []string
	// Detail is how much is shown: one of config.Details. "" means config.DetailNormal. It
	// does not change what a person is asked to approve.
	Detail string

	// DryRun is set if nothing was posted: the page shows what would have been posted.
	DryRun bool
	// Limit is the maximum length of Markdown and Body in UTF-16 units; 0 means
	// MaxComment.
	Limit int

	untitled bool // see Section
	trusted  bool // see withCauses
	tree     *failure.Tree
}

// A Part is one plan's run.
type Part struct {
	Name   string // of the matrix job; "" for a single plan
	Report proposal.Report
	// Audit is the result of verifying the audit log, in the caller's words; "" if
	// it was not verified.
	Audit string
	// Foreign says that Report is untrusted: all of its text is then shown in code
	// elements.
	Foreign bool
	// Decided says that the caller has made the decisions again with its own
	// policy, so that their text is trusted.
	Decided bool
	// Doubt lists what the caller could not confirm in the report, in the caller's words.
	Doubt []string
	// Cosigned says that the caller has cosigned the log; nil if not.
	Cosigned *Cosigned
}

// Cosigned says who has cosigned a log, and where the cosigned checkpoint is kept.
type Cosigned struct {
	Key      string // verifier key of the cosigner
	Time     time.Time
	File     string // path in the artifact
	Artifact string // its name
}

// Sized returns p with a configured detail and length. What a person may be asked to approve
// is never shortened, so the length does not apply to a page with Pending.
func (p Page) Sized(c config.Comment) Page {
	p.Detail = c.Detail
	if c.Length > 0 && p.Pending == nil {
		p.Limit = min(c.Length, p.lengthLimit())
	}
	return p
}

// A Pending identifies everything on the page that waits for approval.
type Pending struct {
	Command string // that approves it, as a person writes it
}

// Markdown returns p as the body of a pull-request comment, including Marker, in at
// most p.Limit units.
func (p Page) Markdown() string {
	head := Marker + "\n\n"
	p.Limit = p.lengthLimit() - text.CountUnits(head)
	return head + p.Body()
}

// Body returns Markdown without the Marker, for a caller that writes the comment's
// first lines itself.
func (p Page) Body() string { return p.composeWithin(p.lengthLimit()) }

// A Section is a page in a comment that has others, too: the caller writes the heading.
type Section struct {
	Mark  string // of the worst outcome; "" if the outcome is not known
	Title string // what follows a name in the heading, as plain text: ": 1 failed, 2 succeeded"
	Text  string // the rest of the Body
}

// Section returns p for a comment with several sections.
func (p Page) Section() Section {
	p.untitled = true
	return Section{Mark: p.headingMark(), Title: strings.TrimPrefix(p.plainTitle(), productName), Text: p.Body()}
}

// MaxSummary is the maximum length of Summary in bytes. GitHub accepts 1 MiB per step
// and shows nothing of a longer summary; the rest is left for other writers of the step.
const MaxSummary = 1<<20 - 16<<10

// Summary returns the Body for a job's step summary, with more room for the output
// of commands. p.Limit is ignored.
func (p Page) Summary() string {
	limit := MaxSummary
	for {
		s := p.composeWithin(limit)
		if len(s) <= MaxSummary {
			return s
		}
		// A unit has at most three bytes, so a third of the room is always enough.
		limit = max(MaxSummary/3, min(limit-1, limit*(MaxSummary/1024)/(len(s)/1024+1)))
	}
}

func (p Page) lengthLimit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return MaxComment
}

// composeWithin tries the levels of detail in order until the fixed parts leave enough
// room for the outputs.
func (p Page) composeWithin(limit int) string {
	p = p.withCauses()
	p.Parts = quoteForeign(p.Parts)
	p.tree = failure.NewTree(p.Files, true)
	items := p.listItems(limit)
	for i, l := range levels {
		d := p.composeAt(items, l)
		room := limit - d.fixed
		if room >= d.min && (room >= min(d.wanted, limit/3) || i == len(levels)-1) {
			return d.fillOutputs(room)
		}
	}
	return p.tooLong()
}

// tooLong is the page if even the shortest form does not fit. That happens only
// with a limit far below GitHub's.
func (p Page) tooLong() string {
	return p.headingBlock() + "The rest does not fit here. See the report file.\n"
}

// headingBlock is the heading and the blank line after it, unless the caller writes the heading.
func (p Page) headingBlock() string {
	if p.untitled {
		return ""
	}
	return p.verdictHeading() + "\n\n"
}

// An item is one record with the data needed to render it.
type item struct {
	proposal.Record
	part    int  // index into Page.Parts
	index   int  // in its part
	layered bool // sandboxes that started later than the record before began with a layer
	outputs []*output
	found   []proposal.Diagnostic // what its output reports as the cause, if it failed
	last    string                // if nothing was found: the last line of its output
}

// listItems lists all records of all parts, in order.
func (p Page) listItems(limit int) []item {
	var list []item
	for i, part := range p.Parts {
		for j, r := range part.Report.Records {
			it := item{Record: r, part: i, index: j, layered: slices.ContainsFunc(part.Report.Records[:j], hasLayer),
				outputs: measureOutputs(shownResult(part.Report, r), len(list), limit, p.Artifact != "")}
			it.outputs = append(it.outputs, baseOutputs(part.Report, r, len(list), limit, p.Artifact != "")...)
			it.found, it.last = p.failureCauses(part.Report, r)
			list = append(list, it)
		}
	}
	return list
}

func hasLayer(r proposal.Record) bool { return r.Result != nil && r.Result.Layer != nil }

func (p Page) allRecords() []proposal.Record {
	var list []proposal.Record
	for _, part := range p.Parts {
		list = append(list, part.Report.Records...)
	}
	return list
}

// hasSeveralParts reports whether there are several parts, which need labels.
func (p Page) hasSeveralParts() bool { return len(p.Parts) > 1 }

// partLabel returns the name of a part and a space, as HTML, or "" for a single part.
func (p Page) partLabel(part int) string {
	if !p.hasSeveralParts() {
		return ""
	}
	return formatCode(p.Parts[part].Name, 60) + " "
}

// composeAt renders the page at one level of detail: what needs attention first, and the
// conditions of the run last.
func (p Page) composeAt(items []item, l detailLevel) *doc {
	d := &doc{}
	d.addText(p.headingBlock())
	if p.isFine() {
		p.wholeFold(d, items, l)
	} else {
		p.writePreface(d, l)
		p.showProblems(d, items, l)
		if lines := p.causeLines(l); len(lines) > 0 {
			d.addBlock("<p>" + strings.Join(lines, "\n<br>") + "</p>")
		}
		p.listMissing(d, l)
		d.addBlock("<p>" + p.subjectLine(l) + "</p>")
		p.showFolds(d, items, l)
		p.showFooters(d, items, l)
	}
	return d
}

// commitName returns a commit's name as HTML, shortened if it is a full id.
func commitName(sha string) string {
	if fullSHA.MatchString(sha) {
		sha = sha[:12]
	}
	return formatCode(sha, 64)
}

// shortDigest returns the first digits of a digest as HTML.
func shortDigest(digest string) string {
	if hex, ok := strings.CutPrefix(digest, "sha256:"); ok && fullSHA.MatchString(hex) {
		digest = hex[:12]
	}
	return formatCode(digest, 80)
}
