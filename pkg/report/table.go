// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// preface says what stopped the run, what it speaks of and what did not hold.
func preface(d *doc, r proposal.Report, l level) {
	if e := r.Error; e != nil {
		lines := []string{"<p><b>Stopped, and nothing more ran.</b> " + code(e.Code, 80) + " " + prose(e.Message, l.long)}
		if e.Hint != "" {
			lines = append(lines, "<br><b>To mend it:</b> "+prose(e.Hint, l.long))
		}
		d.block(append(lines, "</p>")...)
	}
	d.block("<p>" + subject(r.Run) + "</p>")
	if len(r.Run.Unenforced) > 0 {
		d.block("<p>⚠️ <b>Not enforced in this run:</b></p>", list(r.Run.Unenforced, l.run, func(s string) string { return prose(s, l.long) }))
	}
}

var fullSHA = regexp.MustCompile(`^[0-9a-f]{40}$|^[0-9a-f]{64}$`)

// subject says which code the comment speaks of.
func subject(run proposal.Run) string {
	var list []string
	if run.HeadSHA != "" {
		sha := run.HeadSHA
		if fullSHA.MatchString(sha) {
			sha = sha[:12]
		}
		list = append(list, "commit "+code(sha, 64))
	}
	if run.PR > 0 {
		list = append(list, fmt.Sprintf("pull request %d", run.PR))
	}
	if run.Workspace != "" && len(list) == 0 {
		list = append(list, "workspace "+code(run.Workspace, 60))
	}
	if run.Proposer != "" {
		list = append(list, "proposed by "+code(run.Proposer, 60))
	}
	list = append(list, "took "+milliseconds(run.WallMS))
	return strings.ToUpper(list[0][:1]) + strings.Join(list, " · ")[1:]
}

// table has one row a proposal, in the plan's order.
func table(d *doc, r proposal.Report, l level) {
	if len(r.Records) == 0 {
		return
	}
	lines := []string{"<table>", "<tr><th>Outcome</th><th>Proposal</th><th>Command</th></tr>"}
	for i, rec := range r.Records {
		if i == l.rows {
			lines = append(lines, fmt.Sprintf("<tr><td>…</td><td colspan=\"2\">%d more: %s</td></tr>",
				len(r.Records)-i, tally(r.Records[i:])))
			break
		}
		lines = append(lines, row(rec, l))
	}
	d.block(append(lines, "</table>")...)
}

func row(r proposal.Record, l level) string {
	mark, words := outcome(r)
	if by := rule(r); by != "" {
		words += ": " + code(by, l.short)
	}
	if r.Proposal.Expect != "" {
		words += "<br>expected: " + code(r.Proposal.Expect, l.short)
	}
	return fmt.Sprintf("<tr><td>%s"+space+"%s</td><td>%s</td><td>%s</td></tr>",
		mark, words, code(r.Proposal.ID, l.short), code(shortCommand(r), l.short))
}

// rule names the first rule that refused r.
func rule(r proposal.Record) string {
	for _, reason := range r.Decision.Reasons {
		if reason.Effect == r.Decision.Effect && r.Decision.Effect != proposal.Allow {
			return reason.Rule
		}
	}
	return ""
}

// shortCommand is the command for one cell: what is decided is what is shown.
func shortCommand(r proposal.Record) string {
	cmd, info := command(r)
	if r.Proposal.Form() == "code" {
		return info + ": " + strings.TrimSpace(cmd)
	}
	return strings.TrimSpace(cmd)
}

// languages are the info strings that a fence may have; anything else is text.
var languages = map[string]string{"python": "python", "javascript": "javascript", "bash": "sh", "sh": "sh"}

// command returns the text that was decided and may have run, and the fence's
// info string. A proposal that could not be analysed is shown as it was proposed.
func command(r proposal.Record) (cmd, info string) {
	p := r.Proposal
	switch {
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

var bareArg = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

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
