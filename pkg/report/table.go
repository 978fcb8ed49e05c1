// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// table has one row per proposal, in the plans' order. If there are several plans,
// a row precedes each.
func (p Page) table(d *doc, items []item, l level) {
	if len(items) == 0 {
		return
	}
	lines := []string{"<table>", "<tr><th>Outcome</th><th>Command</th></tr>"}
	for i, it := range items {
		if i == l.rows {
			lines = append(lines, fmt.Sprintf("<tr><td>…</td><td>%d more: %s</td></tr>",
				len(items)-i, tally(p.records()[i:])))
			break
		}
		if it.index == 0 && p.several() {
			lines = append(lines, p.section(it.part))
		}
		lines = append(lines, row(it.Record, l))
	}
	d.block(append(lines, "</table>")...)
}

// section is the heading row of a part.
func (p Page) section(part int) string {
	return fmt.Sprintf("<tr><th colspan=\"2\">%s: %s</th></tr>", code(p.Parts[part].Name, 60), tally(p.Parts[part].Report.Records))
}

// row has the id above the command: there is no room for a third column on a phone.
func row(r proposal.Record, l level) string {
	mark, words := outcome(r)
	if by := rule(r); by != "" {
		words += ": " + code(by, l.short)
	}
	if n := refusedPrograms(r); n > 0 {
		words += "<br>⛔ refused: " + several(refusedNames(r), func(s string) string { return code(s, l.short) })
	}
	if names := watchedNames(r); len(names) > 0 {
		words += "<br>👁 would be refused: " + several(names, func(s string) string { return code(s, l.short) })
	}
	if list := reaches(r, isRefused); len(list) > 0 {
		words += "<br>⛔ network refused: " + few(destinations(list), l)
	}
	if list := reaches(r, isWatched); len(list) > 0 {
		words += "<br>👁 network would be refused: " + few(destinations(list), l)
	}
	words += retriedRow(r, l)
	if n, names := crashes(r); n > 0 && !r.Result.Succeeded() {
		words += "<br>💥 crashed: " + several(names, func(s string) string { return code(s, l.short) })
	}
	if r.Approval != nil {
		words += "<br>approved by " + code(r.Approval.By, l.short)
	}
	if list := observed(r); len(list) > 0 && r.Runnable() {
		words += "<br>👁 would be " + effects[list[0].Effect] + ": " + code(list[0].Rule, l.short)
	}
	what := code(r.Proposal.ID, l.short) + "<br>" + narrow(shortCommand(r), l.short)
	what += expectation(r, l)
	return fmt.Sprintf("<tr><td>%s"+space+"%s</td><td>%s</td></tr>", mark, words, what)
}

// effects describe what a rule would have done.
var effects = map[proposal.Effect]string{proposal.Deny: "denied", proposal.Ask: "held for approval", proposal.Allow: "allowed"}

// rule returns the first rule that refused r.
func rule(r proposal.Record) string {
	reason, _ := refusal(r)
	return reason.Rule
}

// shortCommand is the command for one cell: the text that was decided is the text
// that is shown.
func shortCommand(r proposal.Record) string {
	cmd, info := command(r)
	if r.Proposal.Invalid != nil {
		return strings.TrimSpace(strings.TrimPrefix(cmd, "id: "+r.Proposal.ID+"\n"))
	}
	if r.Proposal.Form() == "code" {
		return info + ": " + strings.TrimSpace(cmd)
	}
	return strings.TrimSpace(cmd)
}

// languages are the allowed info strings of a fence; anything else is text.
var languages = map[string]string{"python": "python", "javascript": "javascript", "bash": "sh", "sh": "sh"}

// command returns the text that was decided and may have run, and the fence's info
// string. A proposal that could not be analyzed is shown as proposed.
func command(r proposal.Record) (cmd, info string) {
	p := r.Proposal
	switch {
	case p.Invalid != nil:
		cmd = p.Invalid.Text // as proposed, in lines "name: value"
	case p.Form() == "code":
		cmd, info = p.Code, languages[p.Language]
	case r.Analysis.Canonical != "":
		cmd, info = r.Analysis.Canonical, "sh"
	case p.Form() == "argv":
		cmd, info = strings.Join(quoteAll(p.Argv), " "), "sh"
	default:
		cmd, info = p.Run, "sh"
	}
	if info == "" {
		info = "text"
	}
	return cmd, info
}

var bareArg = pattern.New(`^[A-Za-z0-9_./:=@%+,-]+$`)

func quoteAll(argv []string) []string {
	list := make([]string, len(argv))
	for i, a := range argv {
		if list[i] = a; !bareArg.MatchString(a) {
			list[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return list
}

// list returns items as an HTML list on one line, at most n of them.
func list[T any](items []T, n int, show func(T) string) string {
	var b strings.Builder
	b.WriteString("<ul>")
	for i, item := range items {
		if i == n {
			fmt.Fprintf(&b, "<li>and %d more</li>", len(items)-i)
			break
		}
		b.WriteString("<li>" + show(item) + "</li>")
	}
	return b.String() + "</ul>"
}
