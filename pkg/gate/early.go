// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// startEarly starts the sandbox of Options.Plan, if it has one without a network, of o.
func (g *Gate) startEarly(o sandbox.Options) {
	if g.o.Plan == nil || g.o.ObserveNetworkUnsafe {
		return
	}
	planned, part := g.o.planner().Plan(*g.o.Plan)
	// it may begin with a layer, or make one
	if len(part.Steps) > 0 && g.o.keepsLayers() || g.o.needsPrivate(part, needsNewSandbox(planned)) {
		return
	}
	limits, found := usualLimits(planned.Proposals, g.o.Ceiling)
	if !found {
		return
	}
	o = g.withSetup(o, part)
	o.Limits, o.ImageFrom = limits, g.o.imageFrom(len(planned.Proposals))
	g.early = sandbox.StartEarly(o)
}

// usualLimits returns what the shipped policy most likely grants to the proposals together, and
// whether they need a sandbox without a network.
func usualLimits(list []proposal.Proposal, ceiling proposal.Limits) (proposal.Limits, bool) {
	var records []proposal.Record
	for _, p := range list {
		if _, refused := p.Refusal(); refused {
			continue
		}
		if len(p.Network) > 0 {
			return proposal.Limits{}, false
		}
		limits := policy.UsualLimits
		if p.Limits != nil {
			limits = p.Limits.Or(limits)
		}
		records = append(records, proposal.Record{Decision: proposal.Decision{Effect: proposal.Allow,
			Grant: &proposal.Grant{Limits: limits.Under(ceiling)}}})
	}
	return order.LargestLimits(records)
}
