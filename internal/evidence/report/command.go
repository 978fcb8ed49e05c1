// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// effects describe what a rule would have done.
var effects = map[proposal.Effect]string{proposal.Deny: "denied", proposal.Ask: "held for approval",
	proposal.Allow: "allowed"}

// shortCommand is the command for one cell: the text that was decided is the text
// that is shown.
func shortCommand(r proposal.Record) string {
	cmd, info := decidedText(r)
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

// decidedText returns the text that was decided and may have run, and the fence's info
// string. A proposal that could not be analyzed is shown as proposed.
func decidedText(r proposal.Record) (cmd, info string) {
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

// htmlList returns items as an HTML list on one line, at most n of them.
func htmlList[T any](items []T, n int, show func(T) string) string {
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
