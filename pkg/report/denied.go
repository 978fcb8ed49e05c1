// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A denialGroup is a rule with the commands that it denied.
type denialGroup struct {
	rule, message string // message is "" if they have different ones
	n             int
}

// denialGroups lists the rules that denied commands, in order of their first command, and
// counts those commands. A command is counted once, for its first rule.
func denialGroups(records []proposal.Record) (groups []denialGroup, n int) {
	at := map[string]int{}
	for _, r := range records {
		if kindOf(r) != denied || r.Proposal.Invalid != nil {
			continue
		}
		n++
		reason, _ := refusal(r)
		i, known := at[reason.Rule]
		if !known {
			i = len(groups)
			at[reason.Rule], groups = i, append(groups, denialGroup{rule: reason.Rule, message: reason.Message})
		}
		if groups[i].n++; groups[i].message != reason.Message {
			groups[i].message = ""
		}
	}
	return groups, n
}

// denials says how many commands policy denied. If rules denied several, it lists the rules.
func (p Page) denials(l level) []string {
	groups, n := denialGroups(p.records())
	if n == 0 {
		return nil
	}
	s := fmt.Sprintf("⛔ <b>Policy denied %s; %s did not run.</b> Reasons and alternatives below.", commands(n), itThey(n))
	if len(groups) == n {
		return []string{s}
	}
	if len(groups) == 1 {
		return []string{fmt.Sprintf("⛔ <b>Policy denied %s for one reason; they did not run:</b> ", commands(n)) + groups[0].words(l)}
	}
	for i, g := range groups {
		if i == l.list {
			return []string{s + fmt.Sprintf("<br>and by %d more rules", len(groups)-i)}
		}
		s += fmt.Sprintf("<br>%d by ", g.n) + g.words(l)
	}
	return []string{s}
}

func (g denialGroup) words(l level) string {
	s := code(g.rule, 80)
	if g.message != "" {
		s += " " + prose(g.message, min(l.long, 200))
	}
	return s
}

// refusal returns the first reason that refused r.
func refusal(r proposal.Record) (proposal.Reason, bool) {
	for _, reason := range r.Decision.Reasons {
		if reason.Effect == r.Decision.Effect && !reason.Observed && !r.Runnable() {
			return reason, true
		}
	}
	return proposal.Reason{}, false
}

// invalids says how many proposals were refused before policy saw them.
func (p Page) invalids() []string {
	n := 0
	for _, r := range p.records() {
		if r.Proposal.Invalid != nil {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	are := "are"
	if n == 1 {
		are = "is"
	}
	return []string{fmt.Sprintf("⛔ <b>%d proposal%s of the plan %s invalid; %s did not run.</b> The mistakes are listed below.", n, s(n > 1), are, itThey(n))}
}

// surprises says how many commands ended in the opposite of what the proposer expected.
func (p Page) surprises() []string {
	n := 0
	for _, r := range p.records() {
		if unmet(r) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("⚠️ <b>%s did not end as the proposer expected:</b> marked below.", commands(n))}
}
