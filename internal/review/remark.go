// SPDX-License-Identifier: Apache-2.0

package review

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
)

// The lengths of the parts of a Remark, in UTF-16 units. Together with a suggestion they are
// below the 65,536 that GitHub accepts.
const (
	maxShownClaim   = 4000
	maxShownCommand = 8000
)

// ClaimKey identifies what a result claims: its file, its claim and its reproducer. It is 32 digits of
// lower-case hex.
func (r Result) ClaimKey() string {
	if r.Lint != nil {
		return r.Lint.key
	}
	data, err := json.Marshal([]any{r.Finding.File, r.Finding.Claim, r.Finding.Reproducer})
	if err != nil {
		panic("review: internal error: " + err.Error())
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:32]
}

var remarkTitles = map[Verdict]string{
	Verified:      "Verified finding",
	NotReproduced: "No longer reproduced",
	PreExisting:   "Older than this pull request",
	Flaky:         "Flaky finding",
	NotRun:        "Not run",
}

// RenderRemark renders r, of d, as a comment on its lines in GitHub's Markdown, of less than 60,000
// UTF-16 units. Text of the reviewer is shown in blocks of code, which nothing in it can end. An
// offered suggestion of a verified finding becomes one that GitHub can apply.
func (d Document) RenderRemark(r Result) string {
	if r.Lint != nil {
		return d.lintRemark(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", remarkTitles[r.Verdict])
	if slices.Contains(valid.Severities, r.Finding.Severity) {
		fmt.Fprintf(&b, " (%s)", r.Finding.Severity)
	}
	b.WriteString("\n\n")
	writeExcerpt(&b, "text", r.Finding.Claim, maxShownClaim)
	fmt.Fprintf(&b, "On `%s`, and before it on `%s`: %s.\n\n", shortenSHA(d.Head), shortenSHA(d.Base),
		inlineCode(r.Why))
	if p := r.Finding.Reproducer; p != nil {
		writeExcerpt(&b, "sh", reproducerText(*p), maxShownCommand)
	}
	if block := r.suggestionBlock(); block != "" {
		b.WriteString("The reproducer succeeds with this change:\n\n" + block + "\n")
	}
	b.WriteString("A verdict says what the command did, not that the claim is true.\n")
	return b.String()
}

// writeExcerpt writes untrusted lines as a block of code.
func writeExcerpt(b *strings.Builder, language, s string, units int) {
	lines := text.Excerpt([]byte(s), nil, int64(len(s)), units).Text
	fence := text.Fence(lines)
	fmt.Fprintf(b, "%s%s\n%s%s\n\n", fence, language, lines, fence)
}

// suggestionBlock returns the block with the offered suggestion, or "". It must be exactly what was
// tried, so that one with characters that GitHub or a reader could take for others has none.
func (r Result) suggestionBlock() string {
	if r.Verdict != Verified || r.Suggestion == nil || !r.Suggestion.Offered || !r.Position.isSuggestible() ||
		r.Finding.Suggestion == nil {
		return ""
	}
	with := *r.Finding.Suggestion
	if !utf8.ValidString(with) || strings.ContainsFunc(with,
		func(c rune) bool { return c != '\n' && c != '\t' && text.IsHidden(c) }) {
		return ""
	}
	if with != "" && !strings.HasSuffix(with, "\n") {
		with += "\n"
	}
	fence := text.Fence(with)
	return fence + "suggestion\n" + with + fence + "\n"
}

// CodePlace returns the file and line of r as inline code.
func (r Result) CodePlace() string {
	return inlineCode(fmt.Sprintf("%s:%d", r.Finding.File, r.Finding.Line))
}

// MarkEarlier marks the results whose lines did not change between the commit since, which was
// reviewed before, and head. They get no new comment on their lines. diff is from since to head.
func (d *Document) MarkEarlier(since string, diff *Diff) {
	d.Since, d.Results = since, slices.Clone(d.Results)
	for i := range d.Results {
		r := &d.Results[i]
		changed, _ := diff.Position(r.Finding)
		r.Earlier = r.Position != nil && r.Finding.Side != SideBase && changed == nil
	}
}

// PlacedFindings returns the verified findings that have a position, the most severe first.
func (d Document) PlacedFindings() (list []Result) {
	for _, r := range d.resultsWith(Verified) {
		if r.Position != nil {
			list = append(list, r)
		}
	}
	return list
}

// A SummaryOptions says where else parts of a review are shown, for its Summary.
type SummaryOptions struct {
	Comments map[string]string // by Key: the address of the finding's own comment
	Notes    []string          // what happened to the review, one plain sentence each
	Units    int               // the maximum length in UTF-16 units
	Untitled bool              // the caller writes a heading
	Open     []OpenFinding     // verified findings of earlier reviews that this one does not mention
}

// An OpenFinding is a finding that an earlier review verified and that has a comment on its lines.
type OpenFinding struct {
	Path  string
	Line  int    // 0 if the lines have changed
	URL   string // of the comment
	Since string // the commit that it was last verified on
}

// maxOpen is how many open findings are listed.
const maxOpen = 20

// writeOpen lists what is still open.
func (s SummaryOptions) writeOpen(b *strings.Builder) {
	if len(s.Open) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s of earlier reviews still open:\n\n",
		countNoun(len(s.Open), "verified finding", "verified findings"))
	for i, o := range s.Open {
		if i == maxOpen {
			fmt.Fprintf(b, "- and %d more\n", len(s.Open)-maxOpen)
			break
		}
		place := o.Path
		if o.Line > 0 {
			place = fmt.Sprintf("%s:%d", o.Path, o.Line)
		}
		fmt.Fprintf(b, "- %s: see the [comment](%s), open since commit `%s`\n", inlineCode(place), o.URL,
			shortenSHA(o.Since))
	}
}

func (s SummaryOptions) formatHeading(d Document) string {
	if s.Untitled {
		return inlineCode(d.Headline())
	}
	return "### Review: " + inlineCode(d.Headline())
}

// RenderSummary renders d for the pull request's one comment, of at most s.Units units, which should be
// at least 1,000. What does not fit is counted.
func (d Document) RenderSummary(s SummaryOptions) string {
	for _, size := range []int{maxCell, 200, 60, 0} {
		if whole := d.renderCells(s, size); text.CountUnits(whole) <= s.Units {
			return whole
		}
	}
	return s.formatHeading(d) + "\n\nThe findings do not fit here: see the step summary.\n"
}
