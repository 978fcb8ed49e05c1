// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A layout arranges a sheet as a comment's body.
type layout struct {
	limit  int                    // of the whole body, in UTF-16 units
	runURL func(run int64) string // nil: runs are not linked
}

// overallHeading is the verdict on the newest commit over all sections, or "" if the only section's own
// heading is it. Results for an older commit are no verdict on the newest.
func (s sheet) overallHeading(head string) string {
	switch {
	case len(s.Sections) == 0:
		return ""
	case head != "" && head != s.Head():
		return fmt.Sprintf("## fumehood: no results for the newest commit `%.12s`", head)
	case len(s.Sections) == 1 && s.Omitted == nil:
		return ""
	}
	mark := s.worstMark()
	title := "## " + spaceAfter(mark) + "fumehood" + endings[mark] + ": " + s.commandTally()
	if s.Omitted != nil {
		title += "\n\n⚠️ More sources have reported on this commit than are shown: see its checks."
	}
	return title
}

// endings say in a heading that a run ended early.
var endings = map[string]string{"🛑": " stopped", "⏱️": " ran out of time", "🚫": " was cancelled"}

func spaceAfter(mark string) string {
	if mark == "" {
		return ""
	}
	return mark + " "
}

// headingOf is the heading of one section, in one line.
func (s sheet) headingOf(x Section, head string) string {
	lead := "## " + spaceAfter(x.Mark)
	if s.overallHeading(head) != "" {
		lead = "### " + spaceAfter(x.Mark) + x.heading()
	} else {
		lead += "fumehood"
		if x.Review || x.Requester != "" {
			lead += ", " + x.heading()
		}
	}
	if lead += x.Title; s.isApproved(x) {
		lead += " · approved since, see the results of that run"
	}
	if head != "" && head != x.Head {
		lead += fmt.Sprintf(" · older commit `%.12s`", x.Head)
	}
	return lead
}

// withoutApproved returns x as it counts: if its waiting plans were approved and then ran in a section of their
// own, without what waited, and without anything if all of it ran again.
func (s State) withoutApproved(x Section) Section {
	if !s.isApproved(x) {
		return x
	}
	x.Totals.Asked = 0
	if x.Mark != "✋" {
		return x
	}
	if x.AllPending {
		x.Totals = proposal.Totals{}
	}
	switch t := x.Totals; {
	case t.Unsuccessful()+t.Denied > 0:
		x.Mark = "❌"
	case t.Neutral() > 0:
		x.Mark = "➖"
	default:
		x.Mark = "✅"
	}
	return x
}

// worstMark is the worst mark of all sections, as they count.
func (s State) worstMark() string {
	worst := len(Marks) - 1
	for _, x := range s.Sections {
		worst = min(worst, rankMark(s.withoutApproved(x).Mark))
	}
	if s.Omitted != nil {
		worst = min(worst, rankMark(s.Omitted.Mark), rankMark("⚠️"))
	}
	return Marks[worst]
}

// commandTally counts the commands of all sections in words, the worst first. What a pull request's own
// workflow reports is counted apart.
func (s State) commandTally() string {
	var trusted, reported proposal.Totals
	findings, unreviewed := 0, 0
	for _, x := range s.Sections {
		x = s.withoutApproved(x)
		t := x.Totals
		switch {
		case x.Review && x.Conclusion == "neutral":
			unreviewed++
			continue
		case x.Review && x.Mark != "":
			findings += t.Failed
			continue
		}
		sum := &trusted
		if x.SelfReported || x.Mark == "" {
			sum = &reported
		}
		*sum = sum.Add(t)
	}
	list := countAll(trusted)
	if unreviewed > 0 {
		list = append(list, "not reviewed")
	}
	if findings > 0 {
		list = append([]string{countNoun(findings, "verified finding")}, list...)
	}
	if own := countAll(reported); len(own) > 0 {
		list = append(list, "the pull request's own run reports: "+strings.Join(own, ", "))
	}
	if len(list) == 0 {
		return "nothing ran"
	}
	return strings.Join(list, ", ")
}

func countAll(t proposal.Totals) (list []string) {
	for _, part := range []struct {
		n     int
		words string
	}{
		{t.Failed, "failed"}, {t.Denied, "denied"}, {t.Asked, "waiting for approval"}, {t.CouldNotRun, "could not run"},
		{t.FailedBefore, "failed before"}, {t.NotRun, "not run"}, {t.Succeeded, "succeeded"},
	} {
		if part.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", part.n, part.words))
		}
	}
	return list
}

func countNoun(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// listEarlier lists the results of other commits, folded.
func (l layout) listEarlier(list []Result) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<details>\n<summary>Earlier results: %d</summary>\n\n", len(list))
	for _, r := range list {
		fmt.Fprintf(&b, "- commit `%.12s`: %s", r.Head, r.describe())
		if l.runURL != nil {
			fmt.Fprintf(&b, " · [run](%s)", l.runURL(r.RunID))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n</details>"
}

// describe describes an earlier result.
func (r Result) describe() string {
	if list := countAll(r.Totals); len(list) > 0 {
		return r.Conclusion + ": " + strings.Join(list, ", ")
	}
	return r.Conclusion
}

// sectionRoom is how many units the texts of all sections may have together: what the rest of the comment
// leaves, with the longest notice.
func (l layout) sectionRoom(s sheet, head string) int {
	s.Sections = withoutTexts(s.Sections)
	s.notice = strings.Repeat("\n", 4) // around the texts and the notice
	body, err := l.formatBody(s, head)
	if err != nil {
		return 0
	}
	return max(0, l.limit-text.CountUnits(body)-NoticeRoom)
}

// margin is for what answers add to the state, so that none of them cuts a section.
const margin = 2048

func withoutTexts(sections []Section) []Section {
	bare := make([]Section, len(sections))
	for i, x := range sections {
		x.text = ""
		bare[i] = x
	}
	return bare
}

// fitSections cuts the texts of sections until the comment has at most the limit. A section with a plan that
// waits for approval is never cut: if all of those do not fit, the last can no longer be approved. The
// others share the rest, so that a short text is not cut because of a long one.
func (l layout) fitSections(s sheet, head string) sheet {
	room := l.sectionRoom(s, head)
	sections := make([]Section, len(s.Sections))
	copy(sections, s.Sections)
	s.Sections = sections
	sizes := make([]int, len(sections))
	pending := 0
	for i := range sections {
		x := &sections[i]
		if pending += len(x.Pending); pending > MaxPending || len(x.Pending) > 0 && text.CountUnits(x.text) > room {
			pending -= len(x.Pending)
			x.Pending = nil
		}
		if len(x.Pending) > 0 {
			room -= text.CountUnits(x.text)
			continue
		}
		sizes[i] = text.CountUnits(x.text)
	}
	for i, share := range text.DivideRoom(sizes, room) {
		if sizes[i] > share {
			sections[i].text = cutBlocks(sections[i].text, share)
		}
	}
	return s
}

// roomFor is the room for the results r in s.
func (l layout) roomFor(s sheet, r Results, head string) Room {
	room := l.sectionRoom(s, head) - margin
	var sizes []int
	for _, x := range s.Sections {
		switch {
		case x.Source == r.Source:
		case len(x.Pending) > 0:
			room -= text.CountUnits(x.text)
		default:
			sizes = append(sizes, text.CountUnits(x.text))
		}
	}
	room = max(0, room)
	share := text.DivideRoom(append(sizes, room), room)[len(sizes)]
	if len(r.Pending) == 0 {
		return Room{Units: share, Askable: true}
	}
	return Room{Units: max(share, min(room, r.Asked)), Askable: r.Asked <= room}
}
