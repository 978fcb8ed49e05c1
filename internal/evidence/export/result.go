// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func resultOf(d proposal.Decision, approved bool) Result {
	sorted := decidingFirst(d.Reasons)
	r := Result{Effect: d.Effect.String(), Rules: truncateTexts(rulesOf(d.Rules, sorted, d.Effect), maxName),
		Reasons: truncateReasons(sorted), Approved: approved}
	r.Observed = d.Effect == proposal.Allow &&
		slices.ContainsFunc(d.Reasons, func(x proposal.Reason) bool { return x.Observed })
	if g := d.Grant; g != nil {
		r.Grant = &Grant{Limits: g.Limits, Env: truncateTexts(slices.Sorted(maps.Keys(g.Env)), maxName),
			Network: truncateTexts(g.Network, maxName),
			Phase:   phaseOrRun(g.Phase), Fresh: g.Fresh, Exec: truncateTexts(g.Exec, maxName)}
	}
	return r
}

// newResult returns the result of a decision about one program or connection.
func newResult(effect proposal.Effect, rules []string, reason *proposal.Reason, observed bool) Result {
	r := Result{Effect: effect.String(), Rules: truncateTexts(rules, maxName), Reasons: []proposal.Reason{},
		Observed: observed}
	if reason != nil {
		r.Reasons = truncateReasons([]proposal.Reason{*reason})
	}
	return r
}

func truncateReasons(list []proposal.Reason) []proposal.Reason {
	out := []proposal.Reason{}
	for _, r := range list[:min(len(list), maxList)] {
		r.Rule, r.Message, r.Suggestion = TruncateText(r.Rule, maxName), TruncateText(r.Message, maxWords),
			TruncateText(r.Suggestion, maxWords)
		r.Revision = TruncateText(r.Revision, maxName)
		r.Severity, r.Category = TruncateText(r.Severity, maxName), TruncateText(r.Category, maxName)
		r.Text, r.Layer, r.Retry = TruncateText(r.Text, maxWords), TruncateText(r.Layer, maxName),
			proposal.Retry(TruncateText(string(r.Retry), maxName))
		if r.Alternatives != nil {
			r.Alternatives = truncateTexts(r.Alternatives, maxWords)
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
	r.Effect, r.Rules, r.Reasons = strongest.String(), truncateTexts(r.Rules, maxName), truncateReasons(said)
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
