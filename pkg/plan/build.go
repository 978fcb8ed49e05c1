// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// planOf converts a tree whose envelope has no problem.
func planOf(root *node) proposal.Plan {
	p := proposal.Plan{Schema: root.Text("schema"), Proposer: root.Text("proposer")}
	c := newChecker(root.Get("proposals").Items)
	for _, i := range c.order {
		if ps := c.check(i); len(ps.List) > 0 {
			p.Proposals = append(p.Proposals, c.refused(i, ps.Sorted()))
		} else {
			p.Proposals = append(p.Proposals, proposalOf(c.pruned(i)))
		}
	}
	return p
}

// refused returns what is kept of a proposal with problems.
func (c *checker) refused(i int, list []proposal.Problem) proposal.Proposal {
	return proposal.Proposal{ID: c.ids[i], Invalid: &proposal.Invalid{
		Problems: list[:min(len(list), proposal.MaxInvalid)], Text: c.items[i].String(),
	}}
}

// proposalOf converts a checked and pruned proposal.
func proposalOf(n *node) proposal.Proposal {
	return proposal.Proposal{
		ID:       n.Text("id"),
		Run:      n.Text("run"),
		Argv:     n.Texts("argv"),
		Code:     n.Text("code"),
		Language: n.Text("language"),
		Why:      n.Text("why"),
		Cwd:      n.Text("cwd"),
		Env:      document.EnvOf(n.Get("env")),
		Stdin:    n.Text("stdin"),
		Timeout:  document.DurationOf(n.Get("timeout")),
		Limits:   document.LimitsOf(n.Get("limits")),
		Network:  n.Texts("network"),
		Phase:    n.Text("phase"),
		Outputs:  n.Texts("outputs"),
		Needs:    n.Texts("needs"),
		Expect:   n.Text("expect"),
		Cache:    n.Text("cache") == "true",
		Fresh:    n.Text(fieldSandbox) == "true",
	}
}
