// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A layer that replaces the shipped default can be observed, too: then the default
// decides, and the decision without it is made from the same answers. The second decision
// is only read for its denials.

// markCandidate marks the layer that would grant. The shipped default is then the first layer.
func markCandidate(layers []*layer, observe bool) {
	for i, l := range layers {
		l.candidate = observe && i > 0 && l.role == Grants
	}
}

// candidateLayer is the layer that would grant, or nil.
func (e *Engine) candidateLayer() *layer {
	if i := slices.IndexFunc(e.layers, func(l *layer) bool { return l.candidate }); i >= 0 {
		return e.layers[i]
	}
	return nil
}

// shareReply adds l's answer to would, and reports whether m must take it, too.
func (m *merger) shareReply(l *layer, a reply) bool {
	if m.would == nil {
		return true
	}
	if m.replaced != nil && m.would.replaced == nil {
		m.would.replaced = map[string]bool{}
	}
	if l == m.engine.layers[0] {
		return true
	}
	m.would.readReply(l, a)
	return !l.candidate
}

// observeCandidate records what would have been denied, after the floor's rules, too.
func (m *merger) observeCandidate(floor func(*merger)) {
	if m.would == nil {
		return
	}
	floor(m.would)
	for i, r := range m.would.reasons {
		by := m.would.by[i]
		if by != nil && !by.candidate || r.Observed || m.hasReason(r) {
			continue
		}
		r.Observed, r.Revision = true, m.engine.candidateLayer().revisionOf(r.Rule)
		m.rules[r.Rule] = true
		m.by, m.reasons = append(m.by, m.engine.candidateLayer()), append(m.reasons, r)
	}
}

// hasReason reports whether r is already a reason that counts.
func (m *merger) hasReason(r proposal.Reason) bool {
	return slices.ContainsFunc(m.reasons, func(own proposal.Reason) bool {
		return !own.Observed && own.Rule == r.Rule && own.Effect == r.Effect && own.Command == r.Command &&
			own.Text == r.Text
	})
}

// observeGrant records the limits and kinds of which the candidate would give less.
func (m *merger) observeGrant() {
	if m.would == nil {
		return
	}
	l := m.engine.candidateLayer()
	for _, key := range module.LimitKeys {
		to, given := m.would.limits[key]
		if !given {
			m.addObservedReason(l, "limits", proposal.Deny,
				fmt.Sprintf("layer %q grants no limit %s: every run with it would stop", l.name, key),
				"write limits contains {…} in package "+module.PointProposal)
			continue
		}
		m.lowers = append(m.lowers, observedLimit{l, "limits", whole, key, to})
	}
	for _, kind := range slices.Sorted(maps.Keys(m.kinds)) {
		if !m.would.kinds[kind] {
			m.addObservedReason(l, "exec."+kind, proposal.Allow,
				fmt.Sprintf("layer %q would not allow it to start programs of the kind %q", l.name, kind),
				"write exec contains {…} in package "+module.PointCommand)
		}
	}
}

func (m *merger) addObservedReason(l *layer, rule string, effect proposal.Effect, message, suggestion string) {
	m.rules[rule] = true
	m.by = append(m.by, l)
	m.reasons = append(m.reasons, proposal.Reason{Rule: rule, Effect: effect, Observed: true, Command: whole,
		Revision: l.revisionOf(rule), Message: message, Suggestion: suggestion})
}
