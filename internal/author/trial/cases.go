// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// addCases makes a test of each case in a file. A file that cannot be read gives a test with
// an error for each of its mistakes, and none of its cases runs.
func (t *trial) addCases(layer string, f policy.File) {
	list, problems := t.Cases(f.Content, f.Name)
	for _, p := range problems {
		message := p.Message
		if p.Path != "" {
			message = p.Path + ": " + message
		}
		t.addBroken(KindCase, layer, f.Name, p.Line, message, "fix it: none of the file's cases runs before that")
	}
	for _, c := range list {
		t.tests = append(t.tests, test{
			result: Result{Name: c.Name, Kind: KindCase, Layer: layer, File: f.Name, Line: c.Line,
				Subject: subjectOf(c), Want: wantOf(c)},
			run: func(ctx context.Context, r *Result) { t.tryCase(ctx, c, r) },
		})
	}
}

func subjectOf(c proposal.Case) string {
	var parts []string
	if p := c.Proposal; p != nil {
		switch p.Form() {
		case "run":
			parts = append(parts, p.Run)
		case "argv":
			parts = append(parts, strings.Join(p.Argv, " "))
		default:
			parts = append(parts, p.Language+": "+p.Code)
		}
		if len(p.Network) > 0 {
			parts = append(parts, "network "+strings.Join(p.Network, ", "))
		}
	}
	for _, point := range slices.Sorted(maps.Keys(c.Inputs)) {
		parts = append(parts, point+" "+string(c.Inputs[point]))
	}
	return strings.Join(parts, "; ")
}

func wantOf(c proposal.Case) string {
	var parts []string
	if c.Want != "" {
		parts = append(parts, c.Want)
	}
	for _, r := range c.Rules {
		parts = append(parts, "by "+r)
	}
	for _, r := range c.NotRules {
		parts = append(parts, "not by "+r)
	}
	return strings.Join(parts, " ")
}

func (t *trial) tryCase(ctx context.Context, c proposal.Case, r *Result) {
	a, err := t.decideAndNote(func() (answer, error) { return t.answerOf(ctx, c) })
	if err != nil {
		r.setError(err)
		return
	}
	r.setAnswer(a)
	if r.Status, r.Message = Passed, caseComplaint(c, a); r.Message != "" {
		r.Status = Failed
		return
	}
	for _, rule := range c.NotRules {
		if message, hint := t.reportUnknownRule(rule); message != "" {
			r.Status, r.Message, r.Hint = Erred, message, hint
		}
	}
}

// answerOf decides the trigger first, as the bot does: if it is not allowed, nothing else
// is decided.
func (t *trial) answerOf(ctx context.Context, c proposal.Case) (answer, error) {
	var a answer
	for point, changes := range c.Inputs {
		input, err := applyTo(point, changes)
		if err != nil {
			return a, fmt.Errorf("%s: %w", point, err)
		}
		if a, err = t.judgeInput(ctx, input); err != nil {
			return a, err
		}
	}
	if c.Proposal == nil || len(c.Inputs) > 0 && a.effect != "allow" {
		return a, nil
	}
	b, err := t.decideProposal(ctx, *c.Proposal)
	b.rules = append(b.rules, a.rules...)
	slices.Sort(b.rules)
	return b, err
}

// caseComplaint is what c wants and a does not have, or "".
func caseComplaint(c proposal.Case, a answer) string {
	var all []string
	if c.Want != "" && c.Want != a.effect {
		all = append(all, fmt.Sprintf("want %s, got %s", c.Want, a.effect))
	}
	for _, rule := range c.Rules {
		if !a.hasRule(rule) {
			all = append(all, fmt.Sprintf("the rule %s did not hold", rule))
		}
	}
	for _, rule := range c.NotRules {
		if a.hasRule(rule) {
			all = append(all, fmt.Sprintf("the rule %s held", rule))
		}
	}
	return strings.Join(append(all, limitsComplaints(c.Granted, a.grant)...), "; ")
}

// limitsComplaints compares the wanted limits with the granted ones.
func limitsComplaints(want *proposal.Limits, got *proposal.Grant) []string {
	if want == nil {
		return nil
	}
	var given proposal.Limits
	if got != nil {
		given = got.Limits
	}
	wanted, granted := limitFields(*want), limitFields(given)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[name] != granted[name] {
			all = append(all, fmt.Sprintf("want %s of %v, got %v", name, wanted[name], orNone(granted[name])))
		}
	}
	return all
}

// limitFields are the limits that are not 0, by JSON name.
func limitFields(l proposal.Limits) map[string]any {
	fields := map[string]any{}
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic("trial: internal error: cannot encode limits: " + err.Error())
	}
	for name, v := range fields {
		switch f, isNumber := v.(float64); {
		case v == "0s":
			delete(fields, name)
		case isNumber && slices.Contains([]string{"memory", "disk", "output"}, name):
			fields[name] = proposal.Bytes(f).String()
		}
	}
	return fields
}

func orNone(v any) any {
	if v == nil {
		return "none"
	}
	return v
}
