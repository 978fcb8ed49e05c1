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

// heading is the verdict, the only one in the comment.
func (p Page) heading() string {
	p = p.withCauses()
	end, counted := p.end(), tally(p.records())
	if end != endWhole && len(p.records()) == 0 {
		counted = "nothing ran" // whatever was proposed
	}
	return "## fumehood" + [...]string{"", " ran out of time", " was cancelled", " stopped"}[end] + ": " + counted
}

// preface says what happened and what to do next, what to know before believing
// that, what the page is about, and what was not enforced.
func (p Page) preface(d *doc, l level) {
	if p.Staged {
		d.block("<p>🎭 <b>Staged: nothing was posted.</b> This is what the pull request's comment would have said.</p>")
	}
	d.block("<p>" + strings.Join(p.verdict(l), "\n<br>") + "</p>")
	p.notices(d, l)
	d.block("<p>" + strings.Join(p.subject(l), "\n<br>") + "</p>")
	p.missing(d, l)
}

// verdict has a line for each thing that the reader should act on, most urgent first.
func (p Page) verdict(l level) []string {
	lines := p.failures(l)
	counts := countKinds(p.records())
	if n := counts[failed] - p.unvouched(); n > 0 {
		lines = append(lines, fmt.Sprintf("❌ <b>%s failed.</b> What %s printed stands below.", commands(n), itThey(n)))
	}
	lines = append(lines, p.unable(l)...)
	if n := counts[asked]; n > 0 {
		lines = append(lines, fmt.Sprintf("✋ <b>%s wait%s for approval.</b> %s", commands(n), s(n == 1), p.approve(n)))
	}
	if n := counts[denied]; n > 0 {
		lines = append(lines, fmt.Sprintf("⛔ <b>Policy denied %s</b>: nothing of %s ran. Why, and what would be allowed, stands below.", commands(n), itThem(n)))
	}
	if refused := p.refusals(l); refused != "" {
		lines = append(lines, refused)
	}
	if barred := p.barred(l); barred != "" {
		lines = append(lines, barred)
	}
	if len(lines) > 0 {
		return lines
	}
	switch n := counts[succeeded]; {
	case counts[notRun] > 0:
		return []string{fmt.Sprintf("➖ <b>%s did not run.</b> Why stands below.", commands(counts[notRun]))}
	case n == 0:
		return []string{"➖ <b>No command was proposed.</b> Nothing needs to be done."}
	case p.doubted():
		return []string{fmt.Sprintf("⚠️ <b>The report says that %s succeeded, and was not confirmed.</b> What of it stands next.", commands(n))}
	case len(p.warnings(l)) > 0:
		return []string{fmt.Sprintf("✅ <b>%s ran and succeeded.</b> What to know about that stands next.", commands(n))}
	default:
		return []string{fmt.Sprintf("✅ <b>%s ran and succeeded.</b> Nothing needs to be done.", commands(n))}
	}
}

// refusals says that commands tried to start programs that policy refused, which
// their own success may hide.
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
	s := fmt.Sprintf("⛔ <b>Policy refused programs</b> that %s tried to start: %s; tried %s in all, by %s.", commands(len(who)), several(distinct(what), show), often(n), several(who, show))
	if passed > 0 {
		s += fmt.Sprintf(" <b>%s succeeded nevertheless</b>: what %s did without them stands below.", commands(passed), itThey(passed))
	}
	return s
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// doubted reports whether anything could not be confirmed.
func (p Page) doubted() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return len(part.Doubt) > 0 })
}

// foreign reports whether a stranger may have written any of it.
func (p Page) foreign() bool {
	return slices.ContainsFunc(p.Parts, func(part Part) bool { return part.Foreign })
}

// unvouched counts the commands that failed because the sandbox did, if the verdict
// has said so already.
func (p Page) unvouched() int {
	n := 0
	for _, r := range p.records() {
		if p.end() == endStopped && kindOf(r) == failed && r.Result.Status == proposal.SandboxFailed {
			n++
		}
	}
	return n
}

// failures says what stopped the parts that did not finish. If several stopped for
// the same reason, it is given once.
func (p Page) failures(l level) []string {
	var lines []string
	for _, f := range p.gather(func(part Part) []string { return failure(part.Report, l) }) {
		mark, words, _ := strings.Cut(f.text, " ")
		lines = append(lines, mark+" "+p.names(f.parts)+words)
		if len(lines) == l.list {
			break
		}
	}
	return lines
}

func failure(r proposal.Report, l level) []string {
	e := r.Error
	mend := ""
	if e != nil && e.Hint != "" {
		mend = "<br><b>To mend it:</b> " + prose(firstParagraph(e.Hint), l.long)
	}
	switch endOf(r) {
	case endWhole:
		return nil
	case endCancelled:
		return []string{"🚫 <b>Cancelled before it was done.</b> What had ended until then stands below; run it again for the rest."}
	case endTimeUp:
		return []string{"⏱️ <b>The run's time was up before it was done.</b> What had ended until then stands below." + mend}
	}
	return []string{"🛑 <b>Stopped, and nothing more ran:</b> " + prose(e.Message, l.long) + " (" + code(e.Code, 80) + ")" + mend}
}

// firstParagraph leaves out the YAML of a hint: it is in the log, where it can be copied.
func firstParagraph(hint string) string {
	prose, more, _ := strings.Cut(hint, "\n\n")
	if more == "" {
		return prose
	}
	return strings.TrimSuffix(prose, ":") + " (the job's log has the YAML)"
}

// approve says how a person can approve the waiting commands.
func (p Page) approve(n int) string {
	if p.Pending == nil {
		return "Policy lets " + itThem(n) + " run only when a person says so."
	}
	head := p.Pending.Head
	if fullSHA.MatchString(head) {
		head = head[:12]
	}
	return "To let " + itThem(n) + " run, comment " + code("/fumehood approve "+head, 100) + " here."
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
