// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// listNotices lists what a reader must know before believing the rest.
func (p Page) listNotices(d *doc, l detailLevel) {
	if lines := p.warningLines(l); len(lines) > 0 {
		d.addBlock("<p>⚠️ <b>Warnings:</b></p>", htmlList(lines, 2*l.run, asIs))
	}
	for i, n := range p.Notices {
		if n.Level == "note" && i < l.run {
			d.addBlock("<p>ℹ️ " + formatProse(n.Text, l.long) + "</p>")
		}
	}
}

func asIs(s string) string { return s }

// warningLines lists the caller's notices and doubts, unexpected observations, and whether a
// policy was in observe mode.
func (p Page) warningLines(l detailLevel) []string {
	var lines []string
	for _, n := range p.Notices {
		if n.Level != "note" {
			lines = append(lines, formatProse(n.Text, l.long))
		}
	}
	lines = append(lines, p.mergeStatements("<b>Not confirmed:</b> ", l,
		func(part Part) []string { return part.Doubt })...)
	lines = append(lines, p.mergeStatements("", l, func(part Part) []string { return unexpectedLines(part.Report) })...)
	return append(lines, p.mergeStatements("", l, func(part Part) []string { return observeWarning(part.Report) })...)
}

// unexpectedLines lists the observations that a reader must know: findings of policy,
// unexpected events, gaps in the record, and commands that were run twice.
func unexpectedLines(r proposal.Report) []string {
	list := withheldWarning(r)
	for _, rec := range r.Records {
		list = append(list, retriedWarning(rec)...)
		list = append(list, redactedWarnings(rec)...)
		o := observationsOf(rec)
		if o == nil {
			continue
		}
		id := quoteCode(rec.Proposal.ID)
		for _, f := range o.Findings {
			if ofSecrets(f) {
				continue // reported above, by redactedWarnings
			}
			list = append(list, fmt.Sprintf("%s: %s — %s", id, f.Message, quoteCode(f.Rule)))
		}
		if !o.Complete {
			list = append(list, fmt.Sprintf("The recording of what %s did is incomplete", id))
		}
	}
	return distinctStrings(list)
}

// listMissing lists what was not enforced and what was left out of the commit.
func (p Page) listMissing(d *doc, l detailLevel) {
	for _, m := range []struct {
		title string
		get   func(Part) []string
	}{
		{"Not enforced in this run", func(part Part) []string { return part.Report.Run.Unenforced }},
		{"Not in the workspace", func(part Part) []string { return part.Report.Run.Left }},
	} {
		if lines := p.mergeStatements("", l, m.get); len(lines) > 0 {
			d.addBlock("<p>⚠️ <b>"+m.title+":</b></p>", htmlList(lines, len(lines), asIs))
		}
	}
}

// mergeStatements returns the statements of parts, without duplicates, at most l.run of them.
func (p Page) mergeStatements(prefix string, l detailLevel, get func(Part) []string) []string {
	var lines []string
	all := p.gatherStatements(get)
	for i, one := range all {
		if i == l.run {
			return append(lines, fmt.Sprintf("%sand %d more", prefix, len(all)-i))
		}
		lines = append(lines, prefix+p.partNames(one.parts)+formatProse(one.text, l.long))
	}
	return lines
}

// observeWarning returns the warning that a policy, or some of its rules, were only in observe mode.
func observeWarning(r proposal.Report) []string {
	n := 0
	for _, rec := range r.Records {
		if rec.Runnable() && slices.ContainsFunc(observedReasons(rec),
			func(r proposal.Reason) bool { return r.Effect != proposal.Allow }) {
			n++
		}
	}
	switch {
	case r.Run.Mode == "observe":
	case n == 0:
		return nil
	default:
		return []string{fmt.Sprintf("Rules on trial, and those that are overridden, are not enforced; of the commands that ran, they would have stopped %d", n)}
	}
	return []string{fmt.Sprintf("Observe mode: the policy was evaluated but not enforced; of the commands that ran, it would have stopped %d", n)}
}

// observedReasons returns the reasons that had no effect.
func observedReasons(r proposal.Record) []proposal.Reason {
	var list []proposal.Reason
	for _, reason := range r.Decision.Reasons {
		if reason.Observed {
			list = append(list, reason)
		}
	}
	return list
}

// A statement is a text with the parts that have it.
type statement struct {
	text  string
	parts []int
}

// gatherStatements collects the texts of the parts, in order and without duplicates.
func (p Page) gatherStatements(get func(Part) []string) []statement {
	var list []statement
	at := map[string]int{}
	for i, part := range p.Parts {
		for _, text := range get(part) {
			n, known := at[text]
			if !known {
				n = len(list)
				at[text], list = n, append(list, statement{text: text})
			}
			if !slices.Contains(list[n].parts, i) {
				list[n].parts = append(list[n].parts, i)
			}
		}
	}
	return list
}

// partNames names the parts that are meant, unless all are.
func (p Page) partNames(parts []int) string {
	if len(parts) == len(p.Parts) {
		return ""
	}
	var names []string
	for _, i := range parts {
		names = append(names, p.Parts[i].Name)
	}
	return showSeveral(names, func(s string) string { return formatCode(s, 60) }) + ": "
}
