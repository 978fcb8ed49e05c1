// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A runEnd is how a run ended as a whole, the worst last.
type runEnd int

const (
	endWhole runEnd = iota
	endTimeUp
	endCancelled
	endStopped
)

func endOf(r proposal.Report) runEnd {
	switch {
	case r.Error == nil:
		return endWhole
	case r.Error.Code == "run.cancelled":
		return endCancelled
	case r.Error.Code == "run.timeout":
		return endTimeUp
	}
	return endStopped
}

// worstEnd returns the worst end of all parts.
func (p Page) worstEnd() runEnd {
	worst := endWhole
	for _, part := range p.Parts {
		worst = max(worst, endOf(part.Report))
	}
	return worst
}

// productName begins each title.
const productName = "fumehood"

// verdictHeading is the verdict of the page.
func (p Page) verdictHeading() string {
	if mark := p.headingMark(); mark != "" {
		return "## " + mark + " " + p.plainTitle()
	}
	return "## " + p.plainTitle()
}

// headingMark is the mark of the heading. A run that the pull request's own workflow reports has none,
// because its outcome is not known.
func (p Page) headingMark() string {
	if p.hasForeignPart() {
		return ""
	}
	return p.withCauses().worstMark()
}

// plainTitle is the verdict as plain text.
func (p Page) plainTitle() string {
	p = p.withCauses()
	end, counted := p.worstEnd(), tallyRecords(p.allRecords())
	if end != endWhole && len(p.allRecords()) == 0 {
		counted = "nothing ran" // whatever was proposed
	}
	name := productName + [...]string{"", " ran out of time", " was cancelled", " stopped"}[end]
	if p.hasForeignPart() && end == endWhole {
		name += ": " + p.reporterName() + " reports"
	}
	return name + ": " + counted
}

// reporterName names the run that wrote an untrusted report.
func (p Page) reporterName() string {
	if len(p.distinctValues(func(r proposal.Run) string { return r.Fork })) > 0 {
		return "the fork's own run"
	}
	return "the pull request's own run"
}

// worstMark is the mark of the worst outcome.
func (p Page) worstMark() string {
	if end := p.worstEnd(); end != endWhole {
		return [...]string{endTimeUp: "⏱️", endCancelled: "🚫", endStopped: "🛑"}[end]
	}
	counts := countKinds(p.allRecords())
	if counts[notRun] > 0 && counts[failed]+counts[broken]+counts[denied] == 0 {
		return "❌" // as the conclusion has it: it is not only a consequence
	}
	for k, mark := range [...]string{failed: "❌", broken: "🚫", denied: "⛔", asked: "✋", unable: "➖", before: "➖"} {
		if counts[k] > 0 {
			return mark
		}
	}
	switch {
	case counts[succeeded] == 0:
		return "➖"
	case p.hasDoubts() || p.needsAttention() || len(p.distinctValues(proposal.Run.NetworkMode)) > 0:
		return "⚠️"
	}
	return "✅"
}

// needsAttention reports whether a command that succeeded needs a reader's attention.
func (p Page) needsAttention() bool { return slices.ContainsFunc(p.allRecords(), isNotable) }

// isNotable reports whether a command's own success may hide something: a refused program or
// host, a finding, a failure that the shell hides, or an end that the proposer did not expect.
func isNotable(r proposal.Record) bool {
	o := observationsOf(r)
	return isUnmet(r) || hidesFailure(r) ||
		o != nil && (o.Counts.Refused+o.Counts.NetRefused > 0 ||
			slices.ContainsFunc(o.Findings, func(f proposal.Finding) bool { return !ofSecrets(f) }))
}

// isFine reports whether there is nothing to read but that all commands succeeded.
func (p Page) isFine() bool {
	if p.worstMark() != "✅" || p.hasForeignPart() || p.DryRun || len(p.Notices)+len(p.warningLines(levels[0])) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.Parts,
		func(part Part) bool { return len(part.Report.Run.Unenforced)+len(part.Report.Run.Left) > 0 })
}

// writePreface writes what stopped the run, what to do, and what to know before reading on.
func (p Page) writePreface(d *doc, l detailLevel) {
	if p.DryRun {
		d.addBlock("<p>🎭 <b>Dry run: nothing was posted.</b> The pull request's comment would have said:</p>")
	}
	if lines := p.verdictLines(l); len(lines) > 0 {
		d.addBlock("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	}
	p.listNotices(d, l)
}

// verdictLines has a line for each thing that concerns several commands, most urgent first.
func (p Page) verdictLines(l detailLevel) []string {
	lines := p.failureLines(l)
	if n := countKinds(p.allRecords())[asked]; n > 0 && p.Pending != nil {
		lines = append(lines, fmt.Sprintf("✋ <b>%s need%s a person's approval.</b> %s", countCommands(n),
			pluralS(n == 1), p.approveHint(n)))
	}
	lines = append(lines, p.invalidLine()...)
	for _, line := range []string{p.refusedProgramsLine(l), p.refusedHostsLine(l)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	switch n := countKinds(p.allRecords())[succeeded]; {
	case len(p.allRecords()) == 0 && p.worstEnd() == endWhole:
		lines = append(lines, "<b>No commands were proposed.</b> Nothing to do.")
	case n > 0 && n == len(p.allRecords()) && p.hasDoubts():
		lines = append(lines, fmt.Sprintf("⚠️ <b>The report says that %s succeeded, but this could not be confirmed.</b>", countCommands(n)))
	}
	return lines
}

// refusedProgramsLine reports commands that tried to start programs that policy refused. Their own
// success may hide that.
func (p Page) refusedProgramsLine(l detailLevel) string {
	var who, what []string
	n, passed := 0, 0
	for _, r := range p.allRecords() {
		if refusedPrograms(r) == 0 {
			continue
		}
		n += refusedPrograms(r)
		who = append(who, r.Proposal.ID)
		what = append(what, refusedNames(r)...)
		if r.Result.Succeeded() {
			passed++
		}
	}
	if n == 0 {
		return ""
	}
	show := func(s string) string { return formatCode(s, l.short) }
	s := fmt.Sprintf("⛔ <b>%s tried to start programs that policy refused</b>: %s (%s, by %s).",
		countCommands(len(who)), showSeveral(distinctStrings(what), show), countAttempts(n), showSeveral(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s still succeeded</b> without these programs: check the output below.",
			countCommands(passed))
	}
	return s
}

func countAttempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// hasDoubts reports whether anything could not be confirmed.
func (p Page) hasDoubts() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return len(part.Doubt) > 0 })
}

// hasForeignPart reports whether any part is untrusted.
func (p Page) hasForeignPart() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return part.Foreign })
}

// failureLines returns what stopped the parts that did not finish, each reason once.
func (p Page) failureLines(l detailLevel) []string {
	var lines []string
	for _, f := range p.gatherStatements(func(part Part) []string { return stopReason(part.Report, l) }) {
		mark, words, _ := strings.Cut(f.text, " ")
		lines = append(lines, mark+" "+p.partNames(f.parts)+words)
		if len(lines) == l.list {
			break
		}
	}
	return lines
}

func stopReason(r proposal.Report, l detailLevel) []string {
	e := r.Error
	fix := ""
	if e != nil && e.Hint != "" {
		fix = "<br><b>To fix it:</b> " + formatProse(firstParagraph(e.Hint), l.long)
	}
	switch endOf(r) {
	case endWhole:
		return nil
	case endCancelled, endTimeUp:
		if r.Base != nil { // which is last
			return []string{"🚫 <b>The run ended before the comparison with the base was done.</b> The results below are complete without it; run it again to compare."}
		}
	}
	switch endOf(r) {
	case endCancelled:
		return []string{"🚫 <b>The run was cancelled.</b> Commands that had finished are below; run it again for the rest."}
	case endTimeUp:
		return []string{"⏱️ <b>The run reached its time limit.</b> Commands that had finished are below." + fix}
	}
	if e.Code == ReviewerFailed {
		return []string{"🛑 <b>Nothing ran: " + formatProse(e.Message, l.long) + ".</b>" + fix}
	}
	return []string{"🛑 <b>fumehood stopped; no more commands ran:</b> " + formatProse(e.Message, l.long) + " (" +
		formatCode(e.Code, 80) + ")" + fix}
}

// ReviewerFailed is the code of an error that the job of an AI reviewer did not succeed.
const ReviewerFailed = "review.failed"

// firstParagraph leaves out the YAML of a hint: it is in the log, where it can be copied.
func firstParagraph(hint string) string {
	prose, more, _ := strings.Cut(hint, "\n\n")
	if more == "" {
		return prose
	}
	return strings.TrimSuffix(prose, ":") + " (YAML in the job's log)"
}

// approveHint returns how a person can approve the n waiting commands. p.Pending is not nil.
func (p Page) approveHint(n int) string {
	return "To approve " + itThem(n) + ", comment " + formatCode(p.Pending.Command, 100) + "."
}

func countCommands(n int) string {
	if n == 1 {
		return "1 command"
	}
	return fmt.Sprintf("%d commands", n)
}

func pluralS(yes bool) string {
	if yes {
		return "s"
	}
	return ""
}

func itThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func itThey(n int) string {
	if n == 1 {
		return "it"
	}
	return "they"
}
