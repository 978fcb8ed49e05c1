// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// DecideProgram decides the commands of p by the layers besides the shipped one: what they deny in
// fumehood.command does not start under another name. Rules that are text_only do not count. It is
// like Start otherwise. Decided is false if no layer has such rules: then p does not matter.
func (e *Engine) DecideProgram(
	ctx context.Context, p proposal.Proposal, a proposal.Analysis,
) (d proposal.Decision, decided bool, err error) {
	if !slices.ContainsFunc(e.layers, func(l *layer) bool {
		return l.name != DefaultLayer && !l.textOnly && l.points[module.PointCommand] != nil
	}) {
		return proposal.Decision{Effect: proposal.Allow}, false, nil
	}
	d, err = inTime(ctx, e, func(ctx context.Context) (proposal.Decision, error) {
		m := newMerger(e)
		if err := e.askCommands(ctx, m, termOf(reflect.ValueOf(e.proposalInput(p, a))), p, a); err != nil {
			return proposal.Decision{}, err
		}
		d := proposal.Decision{Effect: proposal.Allow}
		for i, r := range m.completeReasons(p, a) {
			l := m.by[i]
			if l == nil || l.name == DefaultLayer || l.textOnly || l.labelOf(r.Rule).textOnly {
				continue
			}
			if d.Reasons = append(d.Reasons, r); !r.Observed && d.Effect != proposal.Deny {
				d.Effect = r.Effect
			}
		}
		return d, nil
	})
	return d, true, err
}

// Start decides the commands of p, whose analysis is a, when a process of an allowed text
// is about to start them. It evaluates fumehood.command and fumehood.snippet, as Decide
// does. It does not evaluate fumehood.proposal and the Decision has no Grant: requests
// besides commands were decided with the text. An error is a *proposal.StopError; then
// nothing may start.
func (e *Engine) Start(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.Decision, error) {
		m := newMerger(e)
		shared := termOf(reflect.ValueOf(e.proposalInput(p, a)))
		if err := e.askCommands(ctx, m, shared, p, a); err != nil {
			return proposal.Decision{}, err
		}
		if len(a.Commands) == 0 || len(a.Unknowns) > 0 {
			m.applyFloorRules(p, a)
		}
		return proposal.Decision{Effect: m.strictestEffect(), Rules: slices.Sorted(maps.Keys(m.rules)),
			Reasons: m.completeReasons(p, a)}, nil
	})
}
