// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// planOf converts a tree in which check found no problem.
func planOf(root *node) proposal.Plan {
	p := proposal.Plan{Schema: root.text("schema"), Proposer: root.text("proposer")}
	for _, n := range root.get("proposals").items {
		p.Proposals = append(p.Proposals, proposalOf(n))
	}
	return p
}

func proposalOf(n *node) proposal.Proposal {
	return proposal.Proposal{
		ID:       n.text("id"),
		Run:      n.text("run"),
		Argv:     n.texts("argv"),
		Code:     n.text("code"),
		Language: n.text("language"),
		Why:      n.text("why"),
		Cwd:      n.text("cwd"),
		Env:      envOf(n.get("env")),
		Stdin:    n.text("stdin"),
		Timeout:  durationOf(n.get("timeout")),
		Limits:   limitsOf(n.get("limits")),
		Network:  n.texts("network"),
		Phase:    n.text("phase"),
		Outputs:  n.texts("outputs"),
		Needs:    n.texts("needs"),
		Expect:   n.text("expect"),
		Fresh:    n.text(fieldSandbox) == "true" || n.text(fieldFresh) == "true",
	}
}

func envOf(n *node) map[string]string {
	if n == nil {
		return nil
	}
	env := make(map[string]string, len(n.members))
	for _, m := range n.members {
		env[m.name] = m.value.value
	}
	return env
}

func limitsOf(n *node) *proposal.Limits {
	if n == nil {
		return nil
	}
	return &proposal.Limits{
		Wall:   durationOf(n.get("wall")),
		CPUs:   amount(n.get("cpus")),
		Memory: proposal.Bytes(amount(n.get("memory"))),
		Pids:   int(amount(n.get("pids"))),
		Disk:   proposal.Bytes(amount(n.get("disk"))),
		Files:  int(amount(n.get("files"))),
		Output: proposal.Bytes(amount(n.get("output"))),
	}
}

func durationOf(n *node) proposal.Duration {
	if n == nil {
		return 0
	}
	d, err := time.ParseDuration(n.value)
	if err != nil {
		panic("plan: internal error: a checked duration cannot be read: " + err.Error())
	}
	return proposal.Duration(d)
}

func amount(n *node) float64 {
	switch {
	case n == nil:
		return 0
	case n.kind == text:
		return bytesOf(n)
	}
	v, err := numberOf(n)
	if err != nil {
		panic("plan: internal error: a checked number cannot be read: " + err.Error())
	}
	return v
}
