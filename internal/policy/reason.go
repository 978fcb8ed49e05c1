// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// LayerFloor is the layer of a Reason that applies whatever the policies say.
const LayerFloor = "floor"

// roleNames are the names of layers by role, as in flags.
var roleNames = map[Role]string{Restricts: "policy", Opens: "hosts", Allows: "organisation", Grants: "granting"}

// labelLayers gives the layers names for reasons. These are not their paths, which differ
// between jobs that decide the same and may be private.
func labelLayers(layers []*layer) {
	seen := map[string]int{}
	for _, l := range layers {
		l.label = roleNames[l.role]
		if l.name == DefaultLayer && l.hasRole(Grants) {
			l.label = DefaultLayer
		}
		if seen[l.label]++; seen[l.label] > 1 {
			l.label = fmt.Sprintf("%s#%d", l.label, seen[l.label])
		}
	}
}

// completeReasons completes the reasons for the author of p.
func (m *merger) completeReasons(p proposal.Proposal, a proposal.Analysis) []proposal.Reason {
	for i := range m.reasons {
		r := &m.reasons[i]
		r.Layer = LayerFloor
		if l := m.by[i]; l != nil {
			r.Layer = l.label
		}
		if !r.Observed && r.Retry == "" {
			r.Retry = retryOf(m.by[i], r.Rule, r.Effect)
		}
		if s, ok := spanOf(a, *r); ok {
			r.Span = ownSpan(p, a, s)
		}
		if p.Earlier != nil && a.Canonical != "" && r.Span != nil { // else only the new code was read
			placeInCell(p, r)
		}
	}
	return m.reasons
}

// retryOf is the rule's retry in l's METADATA, or else follows from the effect.
func retryOf(l *layer, rule string, effect proposal.Effect) proposal.Retry {
	if rule == RuleMalformed {
		return proposal.RetryNever
	}
	if r := l.labelOf(rule).retry; r != "" {
		return r
	}
	if effect == proposal.Ask {
		return proposal.RetryApproval
	}
	return proposal.RetryVary
}
