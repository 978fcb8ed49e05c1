// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// CheckStillAllowed returns a StopError for the first proposal that must stay allowed and is not
// allowed by judge, which decides with the suggestion.
func (s Suggestion) CheckStillAllowed(
	ctx context.Context, judge Judge, parse func(proposal.Proposal) proposal.Analysis,
) error {
	for _, c := range s.cases {
		d, err := judge.Decide(ctx, c.proposal, parse(c.proposal))
		if err != nil {
			return err
		}
		if d.Effect != c.want {
			a := answerOf(d, nil)
			return newStopError("suggest.defect",
				fmt.Sprintf("the suggested policy does not allow %s: %s by %s",
					text.Inline(Act{Proposal: c.proposal}.Text(), 200), a.Effect, a.Rule),
				"this is a defect: report it with the command", nil)
		}
	}
	return nil
}
