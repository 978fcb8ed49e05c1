// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// notices lists what a reader must know before believing the rest.
func (p Page) notices(d *doc, l level) {
	if lines := p.warnings(l); len(lines) > 0 {
		d.block("<p>⚠️ <b>Warnings:</b></p>", list(lines, 2*l.run, asIs))
	}
	for i, n := range p.Notices {
		if n.Level == "note" && i < l.run {
			d.block("<p>ℹ️ " + prose(n.Text, l.long) + "</p>")
		}
	}
}

func asIs(s string) string { return s }

// warnings lists the caller's notices and doubts, unexpected observations, and whether a
// policy was in observe mode.
func (p Page) warnings(l level) []string {
	var lines []string
	for _, n := range p.Notices {
		if n.Level != "note" {
			lines = append(lines, prose(n.Text, l.long))
		}
	}
	lines = append(lines, p.statements("<b>Not confirmed:</b> ", l, func(part Part) []string { return part.Doubt })...)
	lines = append(lines, p.statements("", l, func(part Part) []string { return unexpected(part.Report) })...)
	return append(lines, p.statements("", l, func(part Part) []string { return observing(part.Report) })...)
}

// unexpected lists the observations that a reader must know: findings of policy,
// unexpected events, gaps in the record, and commands that were run twice.
func unexpected(r proposal.Report) []string {
	list := withheldWarning(r)
	for _, rec := range r.Records {
		list = append(list, retriedWarning(rec)...)
		list = append(list, redactedWarnings(rec)...)
		o := seen(rec)
		if o == nil {
			continue
		}
		id := quote(rec.Proposal.ID)
		for _, f := range o.Findings {
			if ofSecrets(f) {
				continue // reported above, by redactedWarnings
			}
			list = append(list, fmt.Sprintf("%s: %s — %s", id, f.Message, quote(f.Rule)))
		}
		if !o.Complete {
			list = append(list, fmt.Sprintf("The recording of what %s did is incomplete", id))
		}
	}
	return distinct(list)
}

// missing lists what was not enforced and what was left out of the commit.
func (p Page) missing(d *doc, l level) {
	for _, m := range []struct {
		title string
		get   func(Part) []string
	}{
		{"Not enforced in this run", func(part Part) []string { return part.Report.Run.Unenforced }},
		{"Not in the workspace", func(part Part) []string { return part.Report.Run.Left }},
	} {
		if lines := p.statements("", l, m.get); len(lines) > 0 {
			d.block("<p>⚠️ <b>"+m.title+":</b></p>", list(lines, len(lines), asIs))
		}
	}
}

// statements returns the statements of parts, without duplicates, at most l.run of them.
func (p Page) statements(prefix string, l level, get func(Part) []string) []string {
	var lines []string
	all := p.gather(get)
	for i, one := range all {
		if i == l.run {
			return append(lines, fmt.Sprintf("%sand %d more", prefix, len(all)-i))
		}
		lines = append(lines, prefix+p.names(one.parts)+prose(one.text, l.long))
	}
	return lines
}

// observing returns the warning that a policy was only in observe mode.
func observing(r proposal.Report) []string {
	if r.Run.Mode != "observe" {
		return nil
	}
	n := 0
	for _, rec := range r.Records {
		if rec.Runnable() && slices.ContainsFunc(observed(rec), func(r proposal.Reason) bool { return r.Effect != proposal.Allow }) {
			n++
		}
	}
	return []string{fmt.Sprintf("Observe mode: the policy was evaluated but not enforced; of the commands that ran, it would have stopped %d", n)}
}

// observed returns the reasons that had no effect.
func observed(r proposal.Record) []proposal.Reason {
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

// gather collects the texts of the parts, in order and without duplicates.
func (p Page) gather(get func(Part) []string) []statement {
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

// names names the parts that are meant, unless all are.
func (p Page) names(parts []int) string {
	if len(parts) == len(p.Parts) {
		return ""
	}
	var names []string
	for _, i := range parts {
		names = append(names, p.Parts[i].Name)
	}
	return several(names, func(s string) string { return code(s, 60) }) + ": "
}
