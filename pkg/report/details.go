// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// treeUnits is more than the largest tree of programs needs.
const treeUnits = 30000

// problems shows each command that needs attention, worst first: how it ended and the line
// that matters. The rest is folded.
func (p Page) problems(d *doc, items []item, l level) {
	shown := 0
	var left []item
	reasons := map[string]bool{} // each is explained once
	for _, it := range p.ordered(items) {
		again := reasons[why(it.Record)]
		reasons[why(it.Record)] = why(it.Record) != ""
		if kindOf(it.Record) == asked && p.Pending != nil {
			p.problem(d, it, l, again)
			continue
		}
		if shown++; shown > l.details {
			left = append(left, it)
			continue
		}
		p.problem(d, it, l, again)
	}
	p.rest(d, left, l)
}

// ordered returns the items that need attention, worst first. What could not run is not among
// them: see folds.
func (p Page) ordered(items []item) []item {
	var list []item
	for _, k := range []kind{failed, broken, denied, asked, succeeded} {
		for _, it := range items {
			if kindOf(it.Record) == k && (k != succeeded || notable(it.Record)) {
				list = append(list, it)
			}
		}
	}
	return list
}

// rest lists the items for whose details there is no room.
func (p Page) rest(d *doc, left []item, l level) {
	n := min(len(left), l.rows)
	var lines []string
	for _, it := range left[:n] {
		lines = append(lines, "<li>"+p.headline(it, l)+"</li>")
	}
	if n < len(left) {
		lines = append(lines, fmt.Sprintf("<li>%d more commands, not shown here; see the report file</li>", len(left)-n))
	}
	if len(lines) > 0 {
		d.block("<ul>", strings.Join(lines, "\n"), "</ul>")
	}
}

// outcome is the outcome of an item, with a mark and a space before it. A success that only
// the pull request's own run reports has no mark.
func (p Page) outcome(it item) (mark, words string) {
	mark, words = outcome(it.Record)
	if p.Parts[it.part].Foreign && kindOf(it.Record) == succeeded {
		return "", words
	}
	return mark + space, words
}

// headline is an item in one line: its outcome and its command.
func (p Page) headline(it item, l level) string {
	mark, words := p.outcome(it)
	if reason, ok := refusal(it.Record); ok {
		words += ": " + code(reason.Rule, l.short)
	}
	s := mark + p.label(it.part) + "<b>" + code(it.Proposal.ID, l.short) + "</b> " + words
	if kindOf(it.Record) != asked {
		s += " · " + narrow(shortCommand(it.Record), l.short)
	}
	return s
}

// problem shows one command that needs attention. again says that the reason has been
// explained.
func (p Page) problem(d *doc, it item, l level, again bool) {
	lines := []string{p.headline(it, l)}
	if !again {
		lines = append(lines, p.matters(it, l)...)
	}
	d.block("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	if lines := troubles(it.Record, l); len(lines) > 0 {
		d.block("<ul>", strings.Join(lines, "\n"), "</ul>")
	}
	if kindOf(it.Record) == asked {
		p.question(d, it.Record, l)
	}
	open := ""
	if p.Detail == config.DetailFull {
		open = " open"
	}
	if p.hasBody(it, l) {
		d.block("<details"+open+">", "<summary>"+p.contents(it)+" of "+code(it.Proposal.ID, l.short)+"</summary>")
		p.body(d, it, l)
		d.block("</details>")
	}
}

// contents names what the fold of an item has.
func (p Page) contents(it item) string {
	if len(p.outputsOf(it)) > 0 {
		return "Output"
	}
	return "Details"
}

// outputsOf returns the outputs of an item that are shown.
func (p Page) outputsOf(it item) []*output {
	if p.Detail == config.DetailQuiet {
		return nil
	}
	return it.outputs
}

// folds shows the commands that did not run for a reason that is not theirs, and those that
// succeeded, each kind in one fold.
func (p Page) folds(d *doc, items []item, l level) {
	for _, k := range []kind{unable, before, notRun, succeeded} {
		var list []item
		for _, it := range items {
			if kindOf(it.Record) == k && (k != succeeded || !notable(it.Record)) {
				list = append(list, it)
			}
		}
		if len(list) == 0 {
			continue
		}
		mark, _ := p.outcome(list[0])
		show := func(it item) string { return p.label(it.part) + code(it.Proposal.ID, l.short) }
		d.block("<details>", fmt.Sprintf("<summary>%s%d %s: %s</summary>", mark, len(list), kindWords[k], severalOf(list, show)))
		p.nested(d, list, l)
		d.block("</details>")
	}
}

// nested shows items inside a fold, as many as there is room for.
func (p Page) nested(d *doc, list []item, l level) {
	n := min(len(list), l.folded)
	for _, it := range list[:n] {
		if !p.hasBody(it, l) {
			d.block("<p>" + p.headline(it, l) + "</p>")
			continue
		}
		d.block("<details>", "<summary>"+p.headline(it, l)+"</summary>")
		p.body(d, it, l)
		d.block("</details>")
	}
	p.rest(d, list[n:], l)
}

// wholeFold is everything about a run in which nothing needs attention.
func (p Page) wholeFold(d *doc, items []item, l level) {
	d.block("<details>", "<summary>Commands, output and audit log · "+p.subject(l)+"</summary>")
	p.nested(d, items, l)
	p.conditions(d, items, l)
	d.block("</details>")
}

// why is equal for commands that did not run for the same reason, and "" for those that ran.
func why(r proposal.Record) string {
	if reason, ok := refusal(r); ok && r.Proposal.Invalid == nil {
		return reason.Rule + "\x00" + reason.Message
	}
	return ""
}

// body shows an item's whole command, unless it is in the headline, the facts and the output.
func (p Page) body(d *doc, it item, l level) {
	if cmd, info, cut := cutCommand(it.Record, l); cut {
		d.block(fence(info, text.Excerpt([]byte(cmd), nil, int64(len(cmd)), max(l.long, 200)).Text))
	}
	if facts := p.factsOf(it, l); len(facts) > 0 {
		d.block("<ul>", strings.Join(facts, "\n"), "</ul>")
	}
	for _, o := range p.outputsOf(it) {
		d.output(o)
	}
}

func (p Page) hasBody(it item, l level) bool {
	if p.Detail == config.DetailQuiet {
		return false
	}
	_, _, cut := cutCommand(it.Record, l)
	return cut || len(p.outputsOf(it))+len(p.factsOf(it, l)) > 0
}

// cutCommand returns a command, and whether its headline does not show all of it.
func cutCommand(r proposal.Record, l level) (cmd, info string, cut bool) {
	cmd, info = command(r)
	trimmed := strings.TrimSpace(cmd)
	return cmd, info, kindOf(r) != asked && (text.Inline(trimmed, l.short) != trimmed || info != "sh" || len(escape(trimmed, l.short+1)) > l.short)
}

// factsOf lists what there is to know about an item, except for what is shown above it.
func (p Page) factsOf(it item, l level) []string {
	facts := append(reasons(it.Record, l), causeItems(it.Record, l)...)
	facts = append(facts, baseItems(p.Parts[it.part].Report, it.Record, l)...)
	facts = append(facts, stated(it.Record, l)...)
	facts = append(facts, retriedItems(it.Record, l)...)
	if hasLayer(it.Record) {
		facts = append(facts, layerFact(*it.Result.Layer, l))
	}
	if it.Result != nil {
		facts = append(facts, happened(it, l)...)
	}
	if kindOf(it.Record) == succeeded && !notable(it.Record) {
		facts = append(facts, troubles(it.Record, l)...) // what would have been refused
	}
	return append(facts, observation(it.Record, l)...)
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
	if len(items) == 0 {
		for _, u := range r.Analysis.Unknowns {
			items = append(items, "<li>"+unknownWords(r, u, l)+"</li>")
		}
	}
	return items[min(1, len(items)):] // the first is above
}

func approved(a proposal.Approval) string {
	s := "<li>approved by " + code(a.By, 60)
	if !a.Time.IsZero() {
		s += " at " + code(moment(a.Time), 40)
	}
	return s + " for commit " + commit(a.HeadSHA) + ", this plan and this policy</li>"
}

func reasonLine(r proposal.Reason, l level) string { return "<li>" + reasonWords(r, l) + "</li>" }

func reasonWords(r proposal.Reason, l level) string {
	would := ""
	if r.Observed {
		would = "would have been " + effects[r.Effect] + " by "
	}
	s := prose(r.Message, l.long)
	if r.Rule != "" {
		if words := labels(r); words != "" {
			s = "(" + prose(words, 80) + ") " + s
		}
		s = would + code(r.Rule, 80) + " " + s
	}
	if r.Text != "" && !strings.Contains(r.Message, r.Text) {
		s += " (" + code(r.Text, l.short) + ")"
	}
	return s + instead(r.Suggestion, l) + next(r, l)
}

// labels returns r's severity and category, or "".
func labels(r proposal.Reason) string {
	return strings.Join(slices.DeleteFunc([]string{r.Severity, r.Category}, func(s string) bool { return s == "" }), ", ")
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

func unknownWords(r proposal.Record, u proposal.Unknown, l level) string {
	return fmt.Sprintf("%s %s: %s%s",
		code(u.Code, 80), lineOf(r.Analysis, u.Span), prose(u.Message, l.long), instead(u.Hint, l))
}

// lineOf names the place of s in the proposal's own text.
func lineOf(a proposal.Analysis, s proposal.Span) string {
	earlier := strings.TrimSuffix(a.Canonical, a.Own())
	if s.Start < len(earlier) {
		return "in an earlier cell of the context"
	}
	return fmt.Sprintf("line %d, column %d", s.Line-strings.Count(earlier, "\n"), s.Col)
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
	if words := p.Earlier.Words(); words != "" {
		items = append(items, "<li>"+words+"</li>")
	}
	if p.Why != "" {
		whose := "proposer's reason"
		if p.Origin == proposal.OriginSetup {
			whose = "set-up, detected from"
		}
		items = append(items, "<li>"+whose+": "+code(p.Why, l.long)+"</li>")
	}
	if p.Expect != "" && !unmet(r) && !unexpectedSuccess(r) {
		items = append(items, "<li>expected: "+code(p.Expect, l.long)+"</li>")
	}
	if p.Cwd != "" && p.Cwd != "." && kindOf(r) != asked {
		items = append(items, "<li>working directory: "+code(p.Cwd, l.short)+"</li>")
	}
	return items
}

func layerFact(layer proposal.Layer, l level) string {
	digest := code(fmt.Sprintf("%.19s", layer.Digest), l.short)
	if layer.Kept {
		return fmt.Sprintf("<li>what set-up left is the %s %s</li>", layer.Kind(), digest)
	}
	return fmt.Sprintf("<li>not run: its effects are from %s %s of run %s</li>", layer.Kind(), digest, code(layer.Run, l.short))
}

// happened returns the facts of a run other than its output.
func happened(it item, l level) []string {
	r, items := *it.Result, []string(nil)
	add := func(format string, args ...any) {
		items = append(items, "<li>"+fmt.Sprintf(format, args...)+"</li>")
	}
	if r.Detail != "" && r.Status == proposal.NotRun {
		add("%s", prose(r.Detail, l.long))
	}
	if _, words := ending(r); r.Limit != "" && !strings.Contains(words, limit(r.Limit)) {
		add("limit reached: %s", limit(r.Limit))
	}
	switch {
	case r.NewSandbox && it.layered:
		add("ran in a new sandbox, with what set-up left and without the files of other commands")
	case r.NewSandbox && it.index > 0:
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
	if ran := r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed; ran && !r.Succeeded() && r.Stdout.Bytes+r.Stderr.Bytes == 0 {
		add("no output")
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
