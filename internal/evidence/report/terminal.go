// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Text returns r as plain lines for a terminal: a line with counts, what stopped
// the run, and one line per proposal with the first reason of a refusal. It
// contains no colors, and of the output of the commands only the lines that say why they failed.
func Text(r proposal.Report) string {
	var b strings.Builder
	r.Records = trustedCauses(r, false)
	fmt.Fprintln(&b, Page{Parts: []Part{{Report: r}}}.plainTitle())
	if r.Error != nil {
		fmt.Fprintf(&b, "stopped: %s: %s\n", text.Inline(r.Error.Code, 80), text.Inline(r.Error.Message, 500))
		if r.Error.Hint != "" {
			fmt.Fprintf(&b, "hint: %s\n", text.Inline(firstParagraph(r.Error.Hint), 500))
		}
	}
	for _, s := range r.Run.Unenforced {
		fmt.Fprintf(&b, "not enforced: %s\n", text.Inline(s, 500))
	}
	for _, rec := range r.Records {
		fmt.Fprintf(&b, "%-20s %-10s %s\n", plainOutcome(rec), text.Inline(rec.Proposal.ID, 40),
			text.Inline(shortCommand(rec), 80))
		for _, line := range slices.Concat(plainReason(rec), basePlain(r, rec), plainFailures(r, rec)) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	for _, line := range plainHosts(r) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// plainOutcome is describeOutcome without mark or HTML, and whether that was expected.
func plainOutcome(r proposal.Record) string {
	if isUnmet(r) {
		return plainEnding(r) + " · not as expected"
	}
	return plainEnding(r)
}

func plainEnding(r proposal.Record) string {
	if kindOf(r) == before && r.Base.After != "" {
		return "not run: needs " + text.Inline(r.Base.After, 60)
	}
	if kindOf(r) == unable {
		return "could not run: " + text.Inline(r.Cause.Reason, 120)
	}
	if kindOf(r) == succeeded && r.Result.Cached != nil {
		return "succeeded · from cache, run " + text.Inline(r.Result.Cached.Run, 60)
	}
	if kindOf(r) != failed {
		_, words := describeOutcome(r)
		return strings.ReplaceAll(words, space, " ")
	}
	if r.Result.Succeeded() {
		return "expected a failure · " + formatMilliseconds(r.Result.WallMS)
	}
	s := r.Result.Status.String()
	switch r.Result.Status {
	case proposal.Exited:
		s = fmt.Sprintf("exit %d", r.Result.ExitCode)
	case proposal.Signaled:
		s = "killed by " + text.Inline(r.Result.Signal, 20)
	}
	return s + " · " + formatMilliseconds(r.Result.WallMS)
}

// ruleAndLabels returns r's rule with its labels.
func ruleAndLabels(r proposal.Reason) string {
	if words := reasonLabels(r); words != "" {
		return r.Rule + " (" + words + ")"
	}
	return r.Rule
}

func plainReason(r proposal.Record) []string {
	var lines []string
	if words := r.Proposal.Earlier.Words(); words != "" {
		lines = append(lines, words)
	}
	if isUnmet(r) || unexpectedSuccess(r) {
		lines = append(lines, "expected: "+text.Inline(r.Proposal.Expect, 300))
	}
	lines = append(lines, nonEmptyList(codeWords(r))...)
	if r.Approval != nil {
		lines = append(lines, "approved by "+text.Inline(r.Approval.By, 60))
	}
	if r.ClientApproval != nil {
		lines = append(lines, "approved by the client "+text.Inline(r.ClientApproval.Client, 60)+
			", not by a known person")
	}
	for _, reason := range r.Decision.Reasons {
		if reason.Observed {
			lines = append(lines, "would be "+effects[reason.Effect]+": "+
				text.Inline(reason.Rule+": "+reason.Message, 300))
			break
		}
		if r.Runnable() {
			continue
		}
		lines = append(lines, text.Inline(ruleAndLabels(reason)+": "+reason.Message, 300))
		if r.Proposal.Invalid != nil {
			continue // each reason is a mistake, and says how to correct it
		}
		if reason.Suggestion != "" {
			lines = append(lines, "instead: "+text.Inline(reason.Suggestion, 300))
		}
		break
	}
	if r.Result != nil && r.Result.Limit != "" {
		lines = append(lines, "limit reached: "+text.Inline(r.Result.Limit, 60))
	}
	if r.Result != nil && r.Result.FromLayer() {
		lines = append(lines, text.Inline(r.Result.Outcome(), 120))
	}
	if h, found := findHidden(r); found {
		lines = append(lines, h.describeExit(func(s string) string { return text.Inline(s, 60) }))
	}
	if words := limitAdvice(r); words != "" {
		lines = append(lines, words)
	}
	if r.Result != nil && r.Result.Detail != "" {
		lines = append(lines, text.Inline(r.Result.Detail, 300))
	}
	lines = append(append(lines, causePlain(r)...), retriedPlain(r)...)
	for _, words := range redactedWarnings(r) {
		lines = append(lines, text.Inline(words, 300))
	}
	return append(lines, plainSeen(r)...)
}

// plainRefusals explains the first program, and the first destination, that policy refused to a
// command that did not succeed: the rule, its reason, and what to write instead, as for a command that
// was denied. started and reached are what it explains, or nil.
func plainRefusals(r proposal.Record) (lines []string, started *proposal.Event, reached *proposal.Reach) {
	if r.Result.Succeeded() {
		return nil, nil, nil
	}
	explain := func(what, rule, message, suggestion string) {
		lines = append(lines, "refused to "+what+": "+text.Inline(rule+": "+message, 300))
		if suggestion != "" {
			lines = append(lines, "instead: "+text.Inline(suggestion, 300))
		}
	}
	refused := findObjections(observationsOf(r).Execs, proposal.EventRefused)
	if at := slices.IndexFunc(refused,
		func(e proposal.Event) bool { return e.Decision != nil && e.Decision.Reason != nil }); at >= 0 {
		started = &refused[at]
		x, reason := started.Exec, started.Decision.Reason
		what := "start " + text.Inline(strings.Join(quoteAll(x.Argv), " "), 120)
		if x.Loaded {
			what = "load " + text.Inline(x.Path, 120)
		}
		explain(what, reason.Rule, reason.Message, reason.Suggestion)
	}
	barred := filterReaches(r, isRefused)
	if at := slices.IndexFunc(barred, func(reach proposal.Reach) bool { return reach.Message != "" }); at >= 0 {
		reached = &barred[at]
		what := "reach " + text.Inline(reached.Destination(), 120) + timesSuffix(reached.Count)
		if reached.Program != "" {
			what += byRule(text.Inline(baseName(reached.Program), 60))
		}
		explain(what, reached.Rule, reached.Message, reached.Suggestion)
	}
	return lines, started, reached
}

// plainSeen lists the unexpected observations.
func plainSeen(r proposal.Record) []string {
	o := observationsOf(r)
	if o == nil {
		return nil
	}
	explained, started, reached := plainRefusals(r)
	var lines []string
	for _, p := range o.Programs {
		if p.Refused > 0 && (started == nil || p.Path != started.Exec.Path || p.Refused > started.Times) {
			lines = append(lines, "program refused: "+text.Inline(p.Name, 60)+timesSuffix(p.Refused)+
				byRule(text.Inline(p.Rule, 60)))
		}
		if p.Watched > 0 {
			lines = append(lines, "program would be refused: "+text.Inline(p.Name, 60)+timesSuffix(p.Watched)+
				byRule(text.Inline(p.Rule, 60)))
		}
	}
	lines = append(lines, plainNetwork(r, reached)...)
	var findings []string
	for _, f := range o.Findings {
		if ofSecrets(f) {
			continue // already reported
		}
		findings = append(findings, "finding: "+text.Inline(f.Rule+": "+f.Message, 300))
	}
	lines = append(lines, distinctStrings(findings)...) // a connection is seen by the kernel and by the gateway
	if !o.Complete {
		lines = append(lines, "the recording of what it did is incomplete")
	}
	const max = 12
	if n := len(lines) - max; n > 0 {
		lines = append(lines[:max], fmt.Sprintf("and %d more", n))
	}
	return append(explained, lines...)
}
