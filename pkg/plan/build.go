// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// planOf converts a tree whose envelope has no problem.
func planOf(root *node) proposal.Plan {
	p := proposal.Plan{Schema: root.TextOf("schema"), Proposer: root.TextOf("proposer")}
	c := newChecker(root.Get("proposals").Items)
	for _, i := range c.order {
		if ps := c.checkProposal(i); len(ps.List) > 0 {
			p.Proposals = append(p.Proposals, c.keepRefused(i, ps.SortedProblems()))
		} else {
			p.Proposals = append(p.Proposals, proposalOf(c.pruneItem(i)))
		}
	}
	return p
}

// keepRefused returns what is kept of a proposal with problems.
func (c *checker) keepRefused(i int, list []proposal.Problem) proposal.Proposal {
	return proposal.Proposal{ID: c.ids[i], Invalid: &proposal.Invalid{
		Problems: list[:min(len(list), valid.MaxInvalid)], Text: c.items[i].String(),
	}}
}

// proposalOf converts a checked and pruned proposal.
func proposalOf(n *node) proposal.Proposal {
	return proposal.Proposal{
		ID:       n.TextOf("id"),
		Run:      n.TextOf("run"),
		Argv:     n.TextsOf("argv"),
		Code:     n.TextOf("code"),
		Language: n.TextOf("language"),
		Why:      n.TextOf("why"),
		Cwd:      n.TextOf("cwd"),
		Env:      document.EnvOf(n.Get("env")),
		Stdin:    n.TextOf("stdin"),
		Timeout:  document.DurationOf(n.Get("timeout")),
		Limits:   document.LimitsOf(n.Get("limits")),
		Network:  n.TextsOf("network"),
		Phase:    n.TextOf("phase"),
		Outputs:  n.TextsOf("outputs"),
		Needs:    n.TextsOf("needs"),
		Expect:   n.TextOf("expect"),
		Cache:    n.TextOf("cache") == "true",
		Fresh:    n.TextOf(fieldSandbox) == "true",
	}
}
