// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An end says how a run ended as a whole, the worst last.
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

// heading is the verdict: the only one in the comment.
func (p Page) heading() string {
	return "## fumehood" + [...]string{"", " ran out of time", " was cancelled", " stopped"}[p.end()] + ": " + tally(p.records())
}

// preface says what happened and what to do next, what has to be known before that
// is believed, of what the page speaks, and what did not hold.
func (p Page) preface(d *doc, l level) {
	if p.Staged {
		d.block("<p>🎭 <b>Staged: nothing was posted.</b> This is what the pull request's comment would have said.</p>")
	}
	d.block("<p>" + strings.Join(p.verdict(l), "\n<br>") + "</p>")
	p.notices(d, l)
	d.block("<p>" + strings.Join(p.subject(l), "\n<br>") + "</p>")
	p.missing(d, l)
}

// verdict has a line for each thing that happened and wants something of the
// reader, the most pressing first.
func (p Page) verdict(l level) []string {
	lines := p.failures(l)
	counts := countKinds(p.records())
	if n := counts[failed] - p.unvouched(); n > 0 {
		lines = append(lines, fmt.Sprintf("❌ <b>%s failed.</b> What %s printed stands below.", commands(n), itThey(n)))
	}
	if n := counts[asked]; n > 0 {
		lines = append(lines, fmt.Sprintf("✋ <b>%s wait%s for approval.</b> %s", commands(n), s(n == 1), p.approve(n)))
	}
	if n := counts[denied]; n > 0 {
		lines = append(lines, fmt.Sprintf("⛔ <b>Policy denied %s</b>: nothing of %s ran. Why, and what would be allowed, stands below.", commands(n), itThem(n)))
	}
	if len(lines) > 0 {
		return lines
	}
	switch n := counts[succeeded]; {
	case counts[notRun] > 0:
		return []string{fmt.Sprintf("➖ <b>%s did not run.</b> Why stands below.", commands(counts[notRun]))}
	case n > 0:
		return []string{fmt.Sprintf("✅ <b>%s ran and succeeded.</b> Nothing needs to be done.", commands(n))}
	}
	return []string{"➖ <b>No command was proposed.</b> Nothing needs to be done."}
}

// unvouched counts the commands that failed because the sandbox did, where the
// verdict has said so already.
func (p Page) unvouched() int {
	n := 0
	for _, r := range p.records() {
		if p.end() == endStopped && kindOf(r) == failed && r.Result.Status == proposal.SandboxFailed {
			n++
		}
	}
	return n
}

// failures says what stopped the parts that did not come to their end. Where it
// stopped several for one reason, it says so once.
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
		mend = "<br><b>To mend it:</b> " + prose(e.Hint, l.long)
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

// approve says how a person lets the waiting commands run.
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

var fullSHA = regexp.MustCompile(`^[0-9a-f]{40}$|^[0-9a-f]{64}$`)

// subject says in one line which code the page speaks of, and in another under
// which policy and what protection it ran.
func (p Page) subject(l level) []string {
	if len(p.Parts) == 0 {
		return []string{"Nothing is known of a run."}
	}
	run := p.Parts[0].Report.Run
	var what []string
	if sha := p.each(func(r proposal.Run) string { return r.HeadSHA }); len(sha) > 0 {
		what = append(what, "commit "+several(sha, commit))
	}
	if run.PR > 0 {
		what = append(what, fmt.Sprintf("pull request %d", run.PR))
	}
	what = append(what, p.facts(len(what) == 0)...)
	what = append(what, "took "+milliseconds(p.wall()))
	lines := []string{upper(strings.Join(what, " · "))}
	if by := p.each(func(r proposal.Run) string { return r.Policy }); len(by) > 0 {
		lines = append(lines, "Policy "+several(by, short)+p.enforced(l))
	}
	return append(lines, p.voices(l)...)
}

// facts are the parts of the first line that have a name and a text.
func (p Page) facts(alone bool) []string {
	var list []string
	for _, f := range []struct {
		name string
		get  func(proposal.Run) string
		show bool
	}{
		{"from fork", func(r proposal.Run) string { return r.Fork }, true},
		{"workspace", func(r proposal.Run) string { return r.Workspace }, alone},
		{"proposed by", func(r proposal.Run) string { return r.Proposer }, true},
		{"approved by", approver, true},
	} {
		if values := p.each(f.get); f.show && len(values) > 0 {
			list = append(list, f.name+" "+several(values, func(s string) string { return code(s, 60) }))
		}
	}
	return list
}

func approver(r proposal.Run) string {
	if r.Approval == nil {
		return ""
	}
	return r.Approval.By
}

// enforced says in a few words what held, when all parts say the same.
func (p Page) enforced(l level) string {
	held := p.Parts[0].Report.Run.Enforced
	for _, part := range p.Parts[1:] {
		if !slices.Equal(held, part.Report.Run.Enforced) {
			return ""
		}
	}
	words := " · enforced:"
	for i, one := range held {
		piece := " " + prose(one, 120)
		if i > 0 {
			piece = ";" + piece
		}
		if text.Units(words+piece) > 260 {
			return words + fmt.Sprintf("; and %d more", len(held)-i)
		}
		words += piece
	}
	if len(held) == 0 {
		return ""
	}
	return words
}

// voices say what verifying the audit log came to, and where the reports are.
func (p Page) voices(l level) []string {
	var lines []string
	for _, a := range p.gather(func(part Part) []string { return nonempty(part.Audit) }) {
		lines = append(lines, "Audit log: "+p.names(a.parts)+prose(a.text, l.long))
		if len(lines) == l.list {
			break
		}
	}
	if where := p.whereabouts(); where != "" {
		lines = append(lines, "All outputs and the audit log: "+where)
	}
	return lines
}

func nonempty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// wall is how long the longest part took: they run side by side.
func (p Page) wall() int64 {
	var most int64
	for _, part := range p.Parts {
		most = max(most, part.Report.Run.WallMS)
	}
	return most
}

// each returns the different values that the parts' runs have, but not "".
func (p Page) each(get func(proposal.Run) string) []string {
	var list []string
	for _, part := range p.Parts {
		if v := get(part.Report.Run); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// several shows up to three values of a fact that the parts should agree about.
func several(values []string, show func(string) string) string {
	var list []string
	for i, v := range values {
		if i == 3 {
			list = append(list, fmt.Sprintf("%d more", len(values)-3))
			break
		}
		list = append(list, show(v))
	}
	return strings.Join(list, ", ")
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
