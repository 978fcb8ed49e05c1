// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// treeUnits is more than the largest tree of programs needs.
const treeUnits = 30000

// maxOpen is the maximum number of open blocks; beyond that the table is more useful.
const maxOpen = 10

// details has one block per proposal, worst first, across all plans.
func (p Page) details(d *doc, items []item, l level) {
	counts := countKinds(p.records())
	shown, folded, questions := 0, 0, 0
	reasons := map[string]bool{} // the first block of each is open
	for k := failed; k <= succeeded; k++ {
		if counts[k] > 0 && l.allows(k) {
			d.block(fmt.Sprintf("<h3>%s</h3>", sections[k]))
		}
		for _, it := range items {
			if kindOf(it.Record) != k {
				continue
			}
			count, limit := &shown, l.details
			switch {
			case k == succeeded:
				count, limit = &folded, l.folded
			case k == asked && p.Pending != nil:
				questions++
				p.block(d, it, l, questions <= maxOpen)
				continue
			}
			key := why(it.Record)
			again := key != "" && reasons[key]
			reasons[key] = true
			if *count++; *count <= limit {
				p.block(d, it, l, !again && (k != succeeded || refusedPrograms(it.Record)+refusedFlows(it.Record) > 0 || unmet(it.Record)) && *count <= maxOpen)
			}
		}
	}
	if left := max(0, shown-l.details) + max(0, folded-l.folded); left > 0 {
		d.block(fmt.Sprintf("<p>%d more commands are not shown here; see the report file.</p>", left))
	}
}

// why is equal for commands that did not run for the same reason, and "" for those that ran.
func why(r proposal.Record) string {
	switch kindOf(r) {
	case unable:
		return causeKey(*r.Cause)
	case denied:
		reason, _ := refusal(r)
		return reason.Rule + "\x00" + reason.Message
	case notRun:
		if r.Result != nil {
			return r.Result.Detail
		}
	}
	return ""
}

var sections = [...]string{"Failed", "Cancelled", "Denied", "Needs approval", "Could not run", "Not run", "Succeeded"}

func (l level) allows(k kind) bool { return k != succeeded || l.folded > 0 }

// block renders one record.
func (p Page) block(d *doc, r item, l level, open bool) {
	mark, words := outcome(r.Record)
	attr := ""
	if open {
		attr = " open"
	}
	d.block("<details"+attr+">", fmt.Sprintf("<summary>%s %s%s: %s</summary>", mark, p.label(r.part), code(r.Proposal.ID, l.short), words))
	if kindOf(r.Record) == asked {
		p.question(d, r.Record, l)
	} else {
		cmd, info := command(r.Record)
		d.block(fence(info, text.Excerpt([]byte(cmd), nil, int64(len(cmd)), max(l.long, 200)).Text))
	}
	facts := append(reasons(r.Record, l), causeItems(r.Record, l)...)
	facts = append(facts, stated(r.Record, l)...)
	facts = append(facts, retriedItems(r.Record, l)...)
	if kindOf(r.Record) == asked && p.Pending != nil {
		facts = append(facts, "<li>"+p.approve(1)+"</li>")
	}
	if r.Result != nil {
		facts = append(facts, happened(*r.Result, l, r.index)...)
		if words := advice(r.Record); words != "" {
			facts = append(facts, "<li>"+backticks(words)+"</li>")
		}
	}
	facts = append(facts, observation(r.Record, l)...)
	if len(facts) > 0 {
		d.block("<ul>", strings.Join(facts, "\n"), "</ul>")
	}
	if o := seen(r.Record); o != nil {
		if tree := drawing(o.Programs, l.tree); tree != "" {
			d.block(fence("text", text.Excerpt([]byte(tree), nil, int64(len(tree)), treeUnits).Text))
		}
	}
	for _, o := range r.outputs {
		d.output(o)
	}
	d.block("</details>")
}

// reasons returns the rules by which a proposal was refused with alternatives, who
// approved it, and what rules in observe mode would have done.
func reasons(r proposal.Record, l level) []string {
	var items []string
	if r.Approval != nil {
		items = append(items, approved(*r.Approval))
	}
	if r.ClientApproval != nil {
		items = append(items, "<li>approved by the client "+code(r.ClientApproval.Client, 60)+", not by a known person</li>")
	}
	if r.Decision.Effect != proposal.Allow {
		items = append(items, refusals(r, l)...)
	}
	for _, reason := range observed(r) {
		items = append(items, reasonLine(reason, l))
	}
	if n := len(items) - l.list; n > 0 {
		items = append(items[:l.list], fmt.Sprintf("<li>and %d more</li>", n))
	}
	return items
}

func refusals(r proposal.Record, l level) []string {
	var items []string
	for _, reason := range r.Decision.Reasons {
		if !reason.Observed {
			items = append(items, reasonLine(reason, l))
		}
	}
	if len(items) > 0 {
		return items
	}
	for _, u := range r.Analysis.Unknowns {
		items = append(items, unknownLine(u, l))
	}
	return items
}

func approved(a proposal.Approval) string {
	s := "<li>approved by " + code(a.By, 60)
	if !a.Time.IsZero() {
		s += " at " + code(moment(a.Time), 40)
	}
	return s + " for commit " + commit(a.HeadSHA) + ", this plan and this policy</li>"
}

func reasonLine(r proposal.Reason, l level) string {
	would := ""
	if r.Observed {
		would = "would have been " + effects[r.Effect] + " by "
	}
	s := fmt.Sprintf("<li>%s%s %s", would, code(r.Rule, 80), prose(r.Message, l.long))
	if r.Text != "" && !strings.Contains(r.Message, r.Text) {
		s += " (" + code(r.Text, l.short) + ")"
	}
	return s + instead(r.Suggestion, l) + next(r, l) + "</li>"
}

// next returns what to do about r: whether rewording may help, and which commands
// would be allowed. Those may contain text of the proposal.
func next(r proposal.Reason, l level) string {
	s := ""
	if r.Retry == proposal.RetryNever {
		s = "<br>Rewording the command does not help."
	}
	if len(r.Alternatives) > 0 {
		s += "<br><b>Allowed:</b> " + strings.Join(codes(r.Alternatives, l), ", ")
	}
	return s
}

func codes(list []string, l level) []string {
	var all []string
	for _, text := range list[:min(len(list), proposal.MaxAlternatives)] {
		all = append(all, code(text, l.short))
	}
	return all
}

func unknownLine(u proposal.Unknown, l level) string {
	return fmt.Sprintf("<li>%s line %d, column %d: %s%s</li>",
		code(u.Code, 80), u.Span.Line, u.Span.Col, prose(u.Message, l.long), instead(u.Hint, l))
}

func instead(suggestion string, l level) string {
	if suggestion == "" {
		return ""
	}
	return "<br><b>Instead:</b> " + prose(suggestion, l.long)
}

// stated returns the proposer's (or set-up's) reason, expectation and working directory.
func stated(r proposal.Record, l level) []string {
	var items []string
	p := r.Proposal
	if p.Why != "" {
		whose := "proposer's reason"
		if p.Origin == proposal.OriginSetup {
			whose = "set-up, detected from"
		}
		items = append(items, "<li>"+whose+": "+code(p.Why, l.long)+"</li>")
	}
	if p.Expect != "" {
		_, words := outcome(r)
		expected := "expected: "
		if unmet(r) {
			expected = "⚠️ <b>not as expected:</b> "
		}
		items = append(items, "<li>"+expected+code(p.Expect, l.long)+"; result: "+words+"</li>")
	}
	if p.Cwd != "" && p.Cwd != "." && kindOf(r) != asked {
		items = append(items, "<li>working directory: "+code(p.Cwd, l.short)+"</li>")
	}
	return items
}

// happened returns the facts of a run other than its output.
func happened(r proposal.Result, l level, index int) []string {
	var items []string
	add := func(format string, args ...any) {
		items = append(items, "<li>"+fmt.Sprintf(format, args...)+"</li>")
	}
	if r.Detail != "" {
		add("%s", prose(r.Detail, l.long))
	}
	if _, words := ending(r); r.Limit != "" && !strings.Contains(words, limit(r.Limit)) {
		add("limit reached: %s", limit(r.Limit))
	}
	if r.NewSandbox && index > 0 {
		add("ran in a new sandbox, without the files of earlier commands")
	}
	if r.Leftover > 0 {
		add("leftover processes killed: %d", r.Leftover)
	}
	if n := len(r.Changes.Files) + r.Changes.Omitted; n > 0 {
		add("files changed in the sandbox's workspace: %d%s", n, changes(r.Changes, l))
	}
	for _, words := range redactedFacts(r) {
		add("%s", prose(words, l.long))
	}
	if len(r.Outputs) > 0 {
		add("output files:%s", list(r.Outputs, l.list, func(o proposal.Output) string { return outputFile(o, l) }))
	}
	if ran := r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed; ran && r.Stdout.Bytes+r.Stderr.Bytes == 0 {
		add("no output")
	}
	if r.Usage != nil {
		add("took %s", usage(*r.Usage))
	} else if r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed {
		add("CPU time %s, peak memory of the sandbox %s", milliseconds(r.CPUMS), size(r.PeakMem))
	}
	return items
}

var changeMarks = map[string]string{"added": "added", "changed": "changed", "removed": "removed"}

func changes(c proposal.Changes, l level) string {
	all := list(c.Files, l.list, func(f proposal.Change) string {
		s := changeMarks[f.Kind] + " " + code(f.Path, l.short+60)
		if f.Type == "file" && f.Kind != "removed" {
			s += ", " + text.Size(f.Bytes)
		} else if f.Type != "file" {
			s += ", " + code(f.Type, 20)
		}
		return s
	})
	if c.Omitted > 0 {
		all = strings.TrimSuffix(all, "</ul>") + fmt.Sprintf("<li>%d not listed in the report</li></ul>", c.Omitted)
	}
	return all
}

func outputFile(o proposal.Output, l level) string {
	s := code(o.Path, l.short+60)
	if o.Refused != "" {
		return s + ": not copied: " + prose(o.Refused, l.long)
	}
	s += ", " + text.Size(o.Bytes)
	if words := secretsIn(o.Redacted, "it"); words != "" {
		s += ", " + prose(words, l.long)
	}
	if o.File != "" && o.File != o.Path {
		s += ", as " + code(o.File, l.short+60)
	}
	return s
}

// size formats a measured size, rounded.
func size(b proposal.Bytes) string {
	switch {
	case b >= proposal.GiB:
		return fmt.Sprintf("%.1f GiB", float64(b)/float64(proposal.GiB))
	case b >= proposal.MiB:
		return fmt.Sprintf("%d MiB", b/proposal.MiB)
	}
	return fmt.Sprintf("%d KiB", b/proposal.KiB)
}
