// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

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
			m.floor(p, a)
		}
		return proposal.Decision{Effect: m.effect(), Rules: slices.Sorted(maps.Keys(m.rules)), Reasons: m.typed(p, a)}, nil
	})
}
