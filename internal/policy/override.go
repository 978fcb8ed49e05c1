// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// shippedMarks are the marks of the shipped policy's rules.
func shippedMarks() map[string]string {
	l, err := shippedOnce()
	if err != nil {
		return nil // no rule is known, and New returns the error
	}
	return l.marks()
}

// markRules returns the marks of the rules of s.
func markRules(s Layer) map[string]string {
	modules, _ := parseAll(s)
	return module.MarkRules(modules, lint.IDOf)
}

// readOverrides finds the overrides in modules, which are parsed and checked, and takes the effect from those
// that are over, and those of shipped rules that have changed since.
func (l *layer) readOverrides(modules map[string]*ast.Module) {
	if l.shipped {
		return
	}
	l.overrides = map[string]module.Override{}
	for _, m := range modules {
		for _, o := range module.Overrides(m) {
			if lint.IsVoid(o, shippedMarks()) {
				o.Disable(m)
			}
			o.Mark()
			l.overrides[o.Place()] = o
		}
	}
}

// readOverride reads a member of the set override. It returns what is wrong with it, or "".
func (m *merger) readOverride(l *layer, object map[string]any) string {
	at, _ := object["at"].(string)
	o, known := l.overrides[at]
	if !known || m.isObserved(l) {
		return "is not an override that was checked"
	}
	m.overrides = append(m.overrides, o)
	return ""
}

// applyOverrides takes the effect from the shipped policy's reasons, from the one with this index on, that an override
// names, or asks in their place; where several do, asking counts. The overrides are those of one document.
func (m *merger) applyOverrides(from int) {
	for i := from; i < len(m.reasons); i++ {
		r := &m.reasons[i]
		if l := m.by[i]; l == nil || !l.shipped || r.Observed || r.Effect == proposal.Allow {
			continue
		}
		var found *module.Override
		for k, o := range m.overrides {
			if o.ID == r.Rule && (found == nil || found.Effect != "ask") {
				found = &m.overrides[k]
			}
		}
		if found == nil {
			continue
		}
		words := sanitizeLine(fmt.Sprintf("(override until %s, owner %s, ticket %s) ", found.Until(), found.Owner,
			found.Ticket))
		r.Message = sanitizeLine(words + r.Message)
		if found.Effect == "ask" {
			r.Effect, r.Retry = proposal.Ask, proposal.RetryApproval
		} else {
			r.Observed, r.Revision = true, found.Digest
		}
	}
	m.overrides = nil
}

// Overrides says which rules of the shipped policy are overridden, and which overrides have no effect, a line
// for each.
func (e *Engine) Overrides() (lines []string) {
	hasDefault := slices.ContainsFunc(e.layers, func(l *layer) bool { return l.shipped })
	for _, l := range e.layers {
		for _, o := range l.overrides {
			state := "until " + o.Until()
			switch {
			case !hasDefault:
				state = "without effect, since another policy replaces the default"
			case lint.IsVoid(o, shippedMarks()):
				state = "without effect, since the rule has changed"
			case o.IsOver(l.now):
				state = "without effect since " + o.Until()
			}
			lines = append(lines, sanitizeLine(fmt.Sprintf("override %s in the policy %s: %s %s (%s, owner %s, ticket %s): %s",
				state, l.label, o.ID, overrideWords[o.Effect], o.Place(), o.Owner, o.Ticket, o.Reason)))
		}
	}
	slices.SortFunc(lines, strings.Compare)
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("%d more overrides", more))
	}
	return lines
}

// maxListed are the overrides that a report lists: it must not have more than 200 such lines.
const maxListed = 100

var overrideWords = map[string]string{"ask": "asks in place of denying", "allow": "denies nothing"}
