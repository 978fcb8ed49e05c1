// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func resultOf(d proposal.Decision, approved bool) Result {
	sorted := decidingFirst(d.Reasons)
	r := Result{Effect: d.Effect.String(), Rules: texts(rulesOf(d.Rules, sorted, d.Effect), maxName), Reasons: reasons(sorted), Approved: approved}
	r.Observed = d.Effect == proposal.Allow && slices.ContainsFunc(d.Reasons, func(x proposal.Reason) bool { return x.Observed })
	if g := d.Grant; g != nil {
		r.Grant = &Grant{Limits: g.Limits, Env: texts(slices.Sorted(maps.Keys(g.Env)), maxName), Network: texts(g.Network, maxName),
			Phase: phase(g.Phase), Fresh: g.Fresh, Exec: texts(g.Exec, maxName)}
	}
	return r
}

// answer returns the result of a decision about one program or connection.
func answer(effect proposal.Effect, rules []string, reason *proposal.Reason, observed bool) Result {
	r := Result{Effect: effect.String(), Rules: texts(rules, maxName), Reasons: []proposal.Reason{}, Observed: observed}
	if reason != nil {
		r.Reasons = reasons([]proposal.Reason{*reason})
	}
	return r
}

func reasons(list []proposal.Reason) []proposal.Reason {
	out := []proposal.Reason{}
	for _, r := range list[:min(len(list), maxList)] {
		r.Rule, r.Message, r.Suggestion = Text(r.Rule, maxName), Text(r.Message, maxWords), Text(r.Suggestion, maxWords)
		r.Severity, r.Category = Text(r.Severity, maxName), Text(r.Category, maxName)
		r.Text, r.Layer, r.Retry = Text(r.Text, maxWords), Text(r.Layer, maxName), proposal.Retry(Text(string(r.Retry), maxName))
		if r.Alternatives != nil {
			r.Alternatives = texts(r.Alternatives, maxWords)
		}
		out = append(out, r)
	}
	return out
}

// commandResult returns the result for one command, which is the strictest effect that
// applies, and whether there are any reasons for it, enforced or observed.
func commandResult(d proposal.Decision, command int) (Result, bool) {
	r := Result{Effect: Allow, Rules: []string{}, Reasons: []proposal.Reason{}}
	strongest := proposal.Allow
	var said []proposal.Reason
	for _, x := range decidingFirst(d.Reasons) {
		if x.Command != command {
			continue
		}
		said = append(said, x)
		if !slices.Contains(r.Rules, x.Rule) {
			r.Rules = append(r.Rules, x.Rule)
		}
		if x.Observed {
			r.Observed = true
		} else {
			strongest = min(strongest, x.Effect)
		}
	}
	r.Observed = r.Observed && strongest == proposal.Allow
	r.Effect, r.Rules, r.Reasons = strongest.String(), texts(r.Rules, maxName), reasons(said)
	return r, len(said) > 0
}

// ruleLabels returns the rules in the form of OPA's rule_labels.
func ruleLabels(rules []string) []map[string]string {
	var labels []map[string]string
	for _, rule := range rules {
		labels = append(labels, map[string]string{"rule": rule})
	}
	return labels
}
