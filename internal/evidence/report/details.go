// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// treeUnits is more than the largest tree of programs needs.
const treeUnits = 30000

// showProblems shows each command that needs attention, worst first: how it ended and the line
// that matters. The rest is folded.
func (p Page) showProblems(d *doc, items []item, l detailLevel) {
	shown := 0
	var left []item
	reasons := map[string]bool{} // each is explained once
	for _, it := range p.worstFirst(items) {
		again := reasons[notRunReason(it.Record)]
		reasons[notRunReason(it.Record)] = notRunReason(it.Record) != ""
		if kindOf(it.Record) == asked && p.Pending != nil {
			p.showProblem(d, it, l, again)
			continue
		}
		if shown++; shown > l.details {
			left = append(left, it)
			continue
		}
		p.showProblem(d, it, l, again)
	}
	p.listRest(d, left, l)
}

// worstFirst returns the items that need attention, worst first. What could not run is not among
// them: see showFolds.
func (p Page) worstFirst(items []item) []item {
	var list []item
	for _, k := range []kind{failed, broken, denied, asked, succeeded} {
		for _, it := range items {
			if kindOf(it.Record) == k && (k != succeeded || isNotable(it.Record)) {
				list = append(list, it)
			}
		}
	}
	return list
}

// listRest lists the items for whose details there is no room.
func (p Page) listRest(d *doc, left []item, l detailLevel) {
	n := min(len(left), l.rows)
	var lines []string
	for _, it := range left[:n] {
		lines = append(lines, "<li>"+p.itemHeadline(it, l)+"</li>")
	}
	if n < len(left) {
		lines = append(lines, fmt.Sprintf("<li>%d more commands, not shown here; see the report file</li>",
			len(left)-n))
	}
	if len(lines) > 0 {
		d.addBlock("<ul>", strings.Join(lines, "\n"), "</ul>")
	}
}

// itemOutcome is the outcome of an item, with a mark and a space before it. A success that only
// the pull request's own run reports has no mark.
func (p Page) itemOutcome(it item) (mark, words string) {
	mark, words = describeOutcome(it.Record)
	if p.Parts[it.part].Foreign && kindOf(it.Record) == succeeded {
		return "", words
	}
	return mark + space, words
}

// itemHeadline is an item in one line: its outcome and its command.
func (p Page) itemHeadline(it item, l detailLevel) string {
	mark, words := p.itemOutcome(it)
	if reason, ok := firstRefusal(it.Record); ok {
		words += ": " + formatCode(reason.Rule, l.short)
	}
	s := mark + p.partLabel(it.part) + "<b>" + formatCode(it.Proposal.ID, l.short) + "</b> " + words
	if kindOf(it.Record) != asked {
		s += " · " + breakableCode(shortCommand(it.Record), l.short)
	}
	return s
}

// showProblem shows one command that needs attention. again says that the reason has been
// explained.
func (p Page) showProblem(d *doc, it item, l detailLevel, again bool) {
	lines := []string{p.itemHeadline(it, l)}
	if !again {
		lines = append(lines, p.keyLines(it, l)...)
	}
	d.addBlock("<p>" + strings.Join(lines, "\n<br>") + "</p>")
	if lines := runtimeRefusalItems(it.Record, l); len(lines) > 0 {
		d.addBlock("<ul>", strings.Join(lines, "\n"), "</ul>")
	}
	if kindOf(it.Record) == asked {
		p.showQuestion(d, it.Record, l)
	}
	open := ""
	if p.Detail == config.DetailFull {
		open = " open"
	}
	if p.hasBody(it, l) {
		d.addBlock("<details"+open+">",
			"<summary>"+p.foldContents(it)+" of "+formatCode(it.Proposal.ID, l.short)+"</summary>")
		p.showBody(d, it, l)
		d.addBlock("</details>")
	}
}

// foldContents names what the fold of an item has.
func (p Page) foldContents(it item) string {
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

// showFolds shows the commands that did not run for a reason that is not theirs, and those that
// succeeded, each kind in one fold.
func (p Page) showFolds(d *doc, items []item, l detailLevel) {
	for _, k := range []kind{unable, before, notRun, succeeded} {
		var list []item
		for _, it := range items {
			if kindOf(it.Record) == k && (k != succeeded || !isNotable(it.Record)) {
				list = append(list, it)
			}
		}
		if len(list) == 0 {
			continue
		}
		mark, _ := p.itemOutcome(list[0])
		show := func(it item) string { return p.partLabel(it.part) + formatCode(it.Proposal.ID, l.short) }
		d.addBlock("<details>", fmt.Sprintf("<summary>%s%d %s: %s</summary>", mark, len(list), kindWords[k],
			severalOf(list, show)))
		p.showNested(d, list, l)
		d.addBlock("</details>")
	}
}

// showNested shows items inside a fold, as many as there is room for.
func (p Page) showNested(d *doc, list []item, l detailLevel) {
	n := min(len(list), l.folded)
	for _, it := range list[:n] {
		if !p.hasBody(it, l) {
			d.addBlock("<p>" + p.itemHeadline(it, l) + "</p>")
			continue
		}
		d.addBlock("<details>", "<summary>"+p.itemHeadline(it, l)+"</summary>")
		p.showBody(d, it, l)
		d.addBlock("</details>")
	}
	p.listRest(d, list[n:], l)
}

// wholeFold is everything about a run in which nothing needs attention.
func (p Page) wholeFold(d *doc, items []item, l detailLevel) {
	d.addBlock("<details>", "<summary>Commands, output and audit log · "+p.subjectLine(l)+"</summary>")
	p.showNested(d, items, l)
	p.showConditions(d, items, l)
	d.addBlock("</details>")
}

// notRunReason is equal for commands that did not run for the same reason, and "" for those that ran.
func notRunReason(r proposal.Record) string {
	if reason, ok := firstRefusal(r); ok && r.Proposal.Invalid == nil {
		return reason.Rule + "\x00" + reason.Message
	}
	return ""
}

// showBody shows an item's whole command, unless it is in the headline, the facts and the output.
func (p Page) showBody(d *doc, it item, l detailLevel) {
	if cmd, info, cut := cutCommand(it.Record, l); cut {
		d.addBlock(fencedBlock(info, text.Excerpt([]byte(cmd), nil, int64(len(cmd)), max(l.long, 200)).Text))
	}
	if facts := p.factsOf(it, l); len(facts) > 0 {
		d.addBlock("<ul>", strings.Join(facts, "\n"), "</ul>")
	}
	for _, o := range p.outputsOf(it) {
		d.addOutput(o)
	}
}

func (p Page) hasBody(it item, l detailLevel) bool {
	if p.Detail == config.DetailQuiet {
		return false
	}
	_, _, cut := cutCommand(it.Record, l)
	return cut || len(p.outputsOf(it))+len(p.factsOf(it, l)) > 0
}

// cutCommand returns a command, and whether its headline does not show all of it.
func cutCommand(r proposal.Record, l detailLevel) (cmd, info string, cut bool) {
	cmd, info = decidedText(r)
	trimmed := strings.TrimSpace(cmd)
	return cmd, info, kindOf(r) != asked &&
		(text.Inline(trimmed, l.short) != trimmed || info != "sh" || len(escapeHTML(trimmed, l.short+1)) > l.short)
}

// factsOf lists what there is to know about an item, except for what is shown above it.
func (p Page) factsOf(it item, l detailLevel) []string {
	facts := append(reasonItems(it.Record, l), causeItems(it.Record, l)...)
	facts = append(facts, baseItems(p.Parts[it.part].Report, it.Record, l)...)
	facts = append(facts, proposerItems(it.Record, l)...)
	facts = append(facts, retriedItems(it.Record, l)...)
	if hasLayer(it.Record) {
		facts = append(facts, layerFact(*it.Result.Layer, l))
	}
	if it.Result != nil {
		facts = append(facts, resultItems(it, l)...)
	}
	if kindOf(it.Record) == succeeded && !isNotable(it.Record) {
		facts = append(facts, runtimeRefusalItems(it.Record, l)...) // what would have been refused
	}
	return append(facts, observationItems(it.Record, l)...)
}

// reasonItems returns the rules by which a proposal was refused with alternatives, who
// approved it, and what rules in observe mode would have done.
func reasonItems(r proposal.Record, l detailLevel) []string {
	var items []string
	if r.Approval != nil {
		items = append(items, approvalText(*r.Approval))
	}
	if r.ClientApproval != nil {
		items = append(items, "<li>approved by the client "+formatCode(r.ClientApproval.Client, 60)+
			", not by a known person</li>")
	}
	if r.Decision.Effect != proposal.Allow {
		items = append(items, decisionItems(r, l)...)
	}
	for _, reason := range observedReasons(r) {
		items = append(items, reasonLine(reason, l))
	}
	if n := len(items) - l.list; n > 0 {
		items = append(items[:l.list], fmt.Sprintf("<li>and %d more</li>", n))
	}
	return items
}

func decisionItems(r proposal.Record, l detailLevel) []string {
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

func approvalText(a proposal.Approval) string {
	s := "<li>approved by " + formatCode(a.By, 60)
	if !a.Time.IsZero() {
		s += " at " + formatCode(formatTime(a.Time), 40)
	}
	return s + " for commit " + commitName(a.HeadSHA) + ", this plan and this policy</li>"
}

func reasonLine(r proposal.Reason, l detailLevel) string { return "<li>" + reasonWords(r, l) + "</li>" }

func reasonWords(r proposal.Reason, l detailLevel) string {
	would := ""
	if r.Observed {
		would = "would have been " + effects[r.Effect] + " by "
	}
	s := formatProse(r.Message, l.long)
	if r.Rule != "" {
		if words := reasonLabels(r); words != "" {
			s = "(" + formatProse(words, 80) + ") " + s
		}
		s = would + formatCode(r.Rule, 80) + revisionWords(r) + " " + s
	}
	if r.Text != "" && !strings.Contains(r.Message, r.Text) {
		s += " (" + formatCode(r.Text, l.short) + ")"
	}
	return s + insteadText(r.Suggestion, l) + nextSteps(r, l)
}

// reasonLabels returns r's severity and category, or "".
func reasonLabels(r proposal.Reason) string {
	return strings.Join(slices.DeleteFunc([]string{r.Severity, r.Category}, func(s string) bool { return s == "" }),
		", ")
}

// nextSteps returns what to do about r: whether rewording may help, and which commands
// would be allowed. Those may contain text of the proposal.
func nextSteps(r proposal.Reason, l detailLevel) string {
	s := ""
	if r.Retry == proposal.RetryNever {
		s = "<br>Rewording the command does not help."
	}
	if len(r.Alternatives) > 0 {
		s += "<br><b>Allowed:</b> " + strings.Join(codeList(r.Alternatives, l), ", ")
	}
	return s
}

func codeList(list []string, l detailLevel) []string {
	var all []string
	for _, text := range list[:min(len(list), valid.MaxAlternatives)] {
		all = append(all, formatCode(text, l.short))
	}
	return all
}

func unknownWords(r proposal.Record, u proposal.Unknown, l detailLevel) string {
	return fmt.Sprintf("%s %s: %s%s",
		formatCode(u.Code, 80), lineOf(r.Analysis, u.Span), formatProse(u.Message, l.long), insteadText(u.Hint, l))
}

// lineOf names the place of s in the proposal's own text.
func lineOf(a proposal.Analysis, s proposal.Span) string {
	earlier := strings.TrimSuffix(a.Canonical, a.Own())
	if s.Start < len(earlier) {
		return "in an earlier cell of the context"
	}
	return fmt.Sprintf("line %d, column %d", s.Line-strings.Count(earlier, "\n"), s.Col)
}

func insteadText(suggestion string, l detailLevel) string {
	if suggestion == "" {
		return ""
	}
	return "<br><b>Instead:</b> " + formatProse(suggestion, l.long)
}

// proposerItems returns the proposer's (or set-up's) reason, expectation and working directory.
func proposerItems(r proposal.Record, l detailLevel) []string {
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
		items = append(items, "<li>"+whose+": "+formatCode(p.Why, l.long)+"</li>")
	}
	if p.Expect != "" && !isUnmet(r) && !unexpectedSuccess(r) {
		items = append(items, "<li>expected: "+formatCode(p.Expect, l.long)+"</li>")
	}
	if p.Cwd != "" && p.Cwd != "." && kindOf(r) != asked {
		items = append(items, "<li>working directory: "+formatCode(p.Cwd, l.short)+"</li>")
	}
	return items
}

func layerFact(layer proposal.Layer, l detailLevel) string {
	digest := formatCode(fmt.Sprintf("%.19s", layer.Digest), l.short)
	if layer.Kept {
		return fmt.Sprintf("<li>what set-up left is the %s %s</li>", layer.Kind(), digest)
	}
	return fmt.Sprintf("<li>not run: its effects are from %s %s of run %s</li>", layer.Kind(), digest,
		formatCode(layer.Run, l.short))
}

// resultItems returns the facts of a run other than its output.
func resultItems(it item, l detailLevel) []string {
	r, items := *it.Result, []string(nil)
	add := func(format string, args ...any) {
		items = append(items, "<li>"+fmt.Sprintf(format, args...)+"</li>")
	}
	if r.Detail != "" && (r.Status == proposal.NotRun || r.Succeeded()) {
		add("%s", formatProse(r.Detail, l.long))
	}
	if _, words := describeEnding(r); r.Limit != "" && !strings.Contains(words, limitName(r.Limit)) {
		add("limit reached: %s", limitName(r.Limit))
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
		add("files changed in the sandbox's workspace: %d%s", n, changeText(r.Changes, l))
	}
	for _, words := range redactedFacts(r) {
		add("%s", formatProse(words, l.long))
	}
	if len(r.Outputs) > 0 {
		add("output files:%s", htmlList(r.Outputs, l.list, func(o proposal.Output) string { return outputFile(o, l) }))
	}
	if ran := r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed; ran && !r.Succeeded() &&
		r.Stdout.Bytes+r.Stderr.Bytes == 0 {
		add("no output")
	}
	return items
}

var changeMarks = map[string]string{"added": "added", "changed": "changed", "removed": "removed"}

func changeText(c proposal.Changes, l detailLevel) string {
	all := htmlList(c.Files, l.list, func(f proposal.Change) string {
		s := changeMarks[f.Kind] + " " + formatCode(f.Path, l.short+60)
		if f.Type == "file" && f.Kind != "removed" {
			s += ", " + text.Size(f.Bytes)
		} else if f.Type != "file" {
			s += ", " + formatCode(f.Type, 20)
		}
		return s
	})
	if c.Omitted > 0 {
		all = strings.TrimSuffix(all, "</ul>") + fmt.Sprintf("<li>%d not listed in the report</li></ul>", c.Omitted)
	}
	return all
}

func outputFile(o proposal.Output, l detailLevel) string {
	s := formatCode(o.Path, l.short+60)
	if o.Refused != "" {
		return s + ": not copied: " + formatProse(o.Refused, l.long)
	}
	s += ", " + text.Size(o.Bytes)
	if words := secretsIn(o.Redacted, "it"); words != "" {
		s += ", " + formatProse(words, l.long)
	}
	if o.File != "" && o.File != o.Path {
		s += ", as " + formatCode(o.File, l.short+60)
	}
	return s
}

// formatSize formats a measured size, rounded.
func formatSize(b proposal.Bytes) string {
	switch {
	case b >= proposal.GiB:
		return fmt.Sprintf("%.1f GiB", float64(b)/float64(proposal.GiB))
	case b >= proposal.MiB:
		return fmt.Sprintf("%d MiB", b/proposal.MiB)
	}
	return fmt.Sprintf("%d KiB", b/proposal.KiB)
}

// revisionWords names the revision of an observed rule.
func revisionWords(r proposal.Reason) string {
	if r.Revision == "" {
		return ""
	}
	return " (revision " + formatCode(strings.TrimPrefix(r.Revision, "sha256:"), 20) + ")"
}
