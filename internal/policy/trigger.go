// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Trigger decides whether the request t is allowed. The input document is t itself; every
// field is always present. Only Allow lets anything start: no person can be asked, so an
// ask denies. An error is a *proposal.StopError, as for Decide, and then nothing may start
// either.
func (e *Engine) Trigger(ctx context.Context, t points.Trigger) (proposal.Decision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.Decision, error) {
		m := newMerger(e)
		if err := e.askLayers(ctx, m, module.PointTrigger, e.newDocument(t), whole, ""); err != nil {
			return proposal.Decision{}, err
		}
		return m.triggerDecision(), nil
	})
}

func (m *merger) triggerFloor() {
	if !m.allowed[whole] && !m.isDenied(whole) {
		m.addReason("deny", map[string]string{"rule": "trigger.no-rule",
			"message":    "no rule of the granting policy allows this",
			"suggestion": "write allow contains {…} in package " + module.PointTrigger}, whole, "")
	}
}

func (m *merger) triggerDecision() proposal.Decision {
	m.triggerFloor()
	m.observeCandidate((*merger).triggerFloor)
	d := proposal.Decision{Effect: m.strictestEffect(), Rules: slices.Sorted(maps.Keys(m.rules)),
		Reasons: m.completeReasons(proposal.Proposal{}, proposal.Analysis{})}
	if d.Effect == proposal.Ask {
		d.Effect = proposal.Deny
	}
	return d
}
