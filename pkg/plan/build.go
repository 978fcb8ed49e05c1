// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/fumehood/fumehood/pkg/internal/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// planOf converts a tree in which check found no problem.
func planOf(root *node) proposal.Plan {
	p := proposal.Plan{Schema: root.Text("schema"), Proposer: root.Text("proposer")}
	for _, n := range root.Get("proposals").Items {
		p.Proposals = append(p.Proposals, proposalOf(n))
	}
	return p
}

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
		Fresh:    n.Text(fieldSandbox) == "true" || n.Text(fieldFresh) == "true",
	}
}
