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

// preface writes what happened and what to do next, warnings about the results, what
// the page is about, and what was not enforced.
func (p Page) preface(d *doc, l level) {
	if p.DryRun {
		d.block("<p>🎭 <b>Dry run: nothing was posted.</b> The pull request's comment would have said:</p>")
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
	if n := counts[failed] - p.sandboxFailures(); n > 0 {
		lines = append(lines, fmt.Sprintf("❌ <b>%s failed.</b> Output below.", commands(n)))
	}
	lines = append(lines, p.unable(l)...)
	if n := counts[asked]; n > 0 {
		lines = append(lines, fmt.Sprintf("✋ <b>%s need%s a person's approval.</b>%s", commands(n), s(n == 1), p.approveSentence(n)))
	}
	lines = append(append(lines, p.denials(l)...), p.invalids()...)
	if refused := p.refusals(l); refused != "" {
		lines = append(lines, refused)
	}
	if barred := p.barred(l); barred != "" {
		lines = append(lines, barred)
	}
	if len(lines) == 0 {
		lines = p.calm(counts, l)
	}
	return append(lines, p.surprises()...)
}

// calm says that nothing needs attention.
func (p Page) calm(counts [len(kindWords)]int, l level) []string {
	switch n := counts[succeeded]; {
	case counts[notRun] > 0:
		return []string{fmt.Sprintf("➖ <b>%s did not run.</b> Reasons below.", commands(counts[notRun]))}
	case n == 0:
		return []string{"➖ <b>No commands were proposed.</b> Nothing to do."}
	case p.doubted():
		return []string{fmt.Sprintf("⚠️ <b>The report says that %s succeeded, but this could not be confirmed.</b> Read the warnings below.", commands(n))}
	case len(p.warnings(l)) > 0:
		return []string{fmt.Sprintf("✅ <b>%s succeeded.</b> Read the warnings below.", commands(n))}
	default:
		return []string{fmt.Sprintf("✅ <b>%s succeeded.</b> Nothing to do.", commands(n))}
	}
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

// sandboxFailures counts the commands that failed because the sandbox did, if the
// verdict already reports that.
func (p Page) sandboxFailures() int {
	n := 0
	for _, r := range p.records() {
		if p.end() == endStopped && kindOf(r) == failed && r.Result.Status == proposal.SandboxFailed {
			n++
		}
	}
	return n
}

// failures returns what stopped the parts that did not finish, each reason once.
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
	fix := ""
	if e != nil && e.Hint != "" {
		fix = "<br><b>To fix it:</b> " + prose(firstParagraph(e.Hint), l.long)
	}
	switch endOf(r) {
	case endWhole:
		return nil
	case endCancelled:
		return []string{"🚫 <b>The run was cancelled.</b> Commands that had finished are below; run it again for the rest."}
	case endTimeUp:
		return []string{"⏱️ <b>The run reached its time limit.</b> Commands that had finished are below." + fix}
	}
	return []string{"🛑 <b>fumehood stopped; no more commands ran:</b> " + prose(e.Message, l.long) + " (" + code(e.Code, 80) + ")" + fix}
}

// firstParagraph leaves out the YAML of a hint: it is in the log, where it can be copied.
func firstParagraph(hint string) string {
	prose, more, _ := strings.Cut(hint, "\n\n")
	if more == "" {
		return prose
	}
	return strings.TrimSuffix(prose, ":") + " (YAML in the job's log)"
}

// approveSentence returns a space and how to approve the waiting commands, or "" if they
// cannot be approved here.
func (p Page) approveSentence(n int) string {
	if p.Pending == nil {
		return ""
	}
	return " " + p.approve(n)
}

// approve returns how a person can approve n waiting commands. p.Pending is not nil.
func (p Page) approve(n int) string {
	head := p.Pending.Head
	if fullSHA.MatchString(head) {
		head = head[:12]
	}
	return "To approve " + itThem(n) + ", comment " + code("/fumehood approve "+head, 100) + "."
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
