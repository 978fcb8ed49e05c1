// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An end is how a run ended as a whole, the worst last.
type end int

const (
	endWhole end = iota
	endTimeUp
	endCancelled
	endStopped
)

func endOf(r proposal.Report) end {
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

// end returns the worst end of all parts.
func (p Page) end() end {
	worst := endWhole
	for _, part := range p.Parts {
		worst = max(worst, endOf(part.Report))
	}
	return worst
}

// productName begins each title.
const productName = "fumehood"

// heading is the verdict of the page.
func (p Page) heading() string {
	if mark := p.headingMark(); mark != "" {
		return "## " + mark + " " + p.title()
	}
	return "## " + p.title()
}

// headingMark is the mark of the heading. A run that the pull request's own workflow reports has none,
// because its outcome is not known.
func (p Page) headingMark() string {
	if p.foreign() {
		return ""
	}
	return p.withCauses().mark()
}

// title is the verdict as plain text.
func (p Page) title() string {
	p = p.withCauses()
	end, counted := p.end(), tally(p.records())
	if end != endWhole && len(p.records()) == 0 {
		counted = "nothing ran" // whatever was proposed
	}
	name := productName + [...]string{"", " ran out of time", " was cancelled", " stopped"}[end]
	if p.foreign() && end == endWhole {
		name += ": " + p.reporter() + " reports"
	}
	return name + ": " + counted
}

// reporter names the run that wrote an untrusted report.
func (p Page) reporter() string {
	if len(p.each(func(r proposal.Run) string { return r.Fork })) > 0 {
		return "the fork's own run"
	}
	return "the pull request's own run"
}

// mark is the mark of the worst outcome.
func (p Page) mark() string {
	if end := p.end(); end != endWhole {
		return [...]string{endTimeUp: "⏱️", endCancelled: "🚫", endStopped: "🛑"}[end]
	}
	counts := countKinds(p.records())
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
	case p.doubted() || p.attention() || len(p.each(proposal.Run.NetworkMode)) > 0:
		return "⚠️"
	}
	return "✅"
}

// attention reports whether a command that succeeded needs a reader's attention.
func (p Page) attention() bool { return slices.ContainsFunc(p.records(), notable) }

// notable reports whether a command's own success may hide something: a refused program or
// host, a finding, a failure that the shell hides, or an end that the proposer did not expect.
func notable(r proposal.Record) bool {
	o := seen(r)
	return unmet(r) || hidesFailure(r) || o != nil && (o.Counts.Refused+o.Counts.NetRefused > 0 || slices.ContainsFunc(o.Findings, func(f proposal.Finding) bool { return !ofSecrets(f) }))
}

// fine reports whether there is nothing to read but that all commands succeeded.
func (p Page) fine() bool {
	if p.mark() != "✅" || p.foreign() || p.DryRun || len(p.Notices)+len(p.warnings(levels[0])) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.Parts, func(part Part) bool { return len(part.Report.Run.Unenforced)+len(part.Report.Run.Left) > 0 })
}

// preface writes what stopped the run, what to do, and what to know before reading on.
func (p Page) preface(d *doc, l level) {
	if p.DryRun {
		d.block("<p>🎭 <b>Dry run: nothing was posted.</b> The pull request's comment would have said:</p>")
	}
	if lines := p.verdict(l); len(lines) > 0 {
		d.block("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	}
	p.notices(d, l)
}

// verdict has a line for each thing that concerns several commands, most urgent first.
func (p Page) verdict(l level) []string {
	lines := p.failures(l)
	if n := countKinds(p.records())[asked]; n > 0 && p.Pending != nil {
		lines = append(lines, fmt.Sprintf("✋ <b>%s need%s a person's approval.</b> %s", commands(n), s(n == 1), p.approve(n)))
	}
	lines = append(lines, p.invalids()...)
	for _, line := range []string{p.refusals(l), p.barred(l)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	switch n := countKinds(p.records())[succeeded]; {
	case len(p.records()) == 0 && p.end() == endWhole:
		lines = append(lines, "<b>No commands were proposed.</b> Nothing to do.")
	case n > 0 && n == len(p.records()) && p.doubted():
		lines = append(lines, fmt.Sprintf("⚠️ <b>The report says that %s succeeded, but this could not be confirmed.</b>", commands(n)))
	}
	return lines
}

// refusals reports commands that tried to start programs that policy refused. Their own
// success may hide that.
func (p Page) refusals(l level) string {
	var who, what []string
	n, passed := 0, 0
	for _, r := range p.records() {
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
	show := func(s string) string { return code(s, l.short) }
	s := fmt.Sprintf("⛔ <b>%s tried to start programs that policy refused</b>: %s (%s, by %s).", commands(len(who)), several(distinct(what), show), attempts(n), several(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s still succeeded</b> without these programs: check the output below.", commands(passed))
	}
	return s
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// doubted reports whether anything could not be confirmed.
func (p Page) doubted() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return len(part.Doubt) > 0 })
}

// foreign reports whether any part is untrusted.
func (p Page) foreign() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return part.Foreign })
}

// failures returns what stopped the parts that did not finish, each reason once.
func (p Page) failures(l level) []string {
	var lines []string
	for _, f := range p.gather(func(part Part) []string { return stopReason(part.Report, l) }) {
		mark, words, _ := strings.Cut(f.text, " ")
		lines = append(lines, mark+" "+p.names(f.parts)+words)
		if len(lines) == l.list {
			break
		}
	}
	return lines
}

func stopReason(r proposal.Report, l level) []string {
	e := r.Error
	fix := ""
	if e != nil && e.Hint != "" {
		fix = "<br><b>To fix it:</b> " + prose(firstParagraph(e.Hint), l.long)
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
		return []string{"🛑 <b>Nothing ran: " + prose(e.Message, l.long) + ".</b>" + fix}
	}
	return []string{"🛑 <b>fumehood stopped; no more commands ran:</b> " + prose(e.Message, l.long) + " (" + code(e.Code, 80) + ")" + fix}
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

// approve returns how a person can approve the n waiting commands. p.Pending is not nil.
func (p Page) approve(n int) string {
	return "To approve " + itThem(n) + ", comment " + code(p.Pending.Command, 100) + "."
}

func commands(n int) string {
	if n == 1 {
		return "1 command"
	}
	return fmt.Sprintf("%d commands", n)
}

func s(yes bool) string {
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
