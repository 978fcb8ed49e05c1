// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"path"
	"slices"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Planner makes of what a proposer wrote what is decided.
type Planner struct {
	Setup     setup.Setup
	Limits    *proposal.Limits // of proposals that request none
	Directory string           // of the workspace, to which the proposals' own are relative
}

// Plan returns plan as it is decided: its proposals as Propose returns them, and before them the commands
// of Setup, whose ids do not repeat the plan's. Its services are started first, and again before each
// proposal that requests a new sandbox.
func (pl Planner) Plan(plan proposal.Plan) proposal.Plan {
	plan.Proposals = pl.Propose(plan.Proposals...)
	taken, renamed := map[string]bool{}, map[string]string{}
	for _, p := range plan.Proposals {
		taken[p.ID] = true
	}
	all := pl.serviceProposals(taken, "")
	for _, step := range pl.Setup.ChoosePart(setup.Everything).Steps {
		p := setupProposal(step)
		id := p.ID
		p.ID = takeFreeID(taken, p.ID)
		renamed[id] = p.ID
		p.Needs = slices.Clone(p.Needs)
		for i, need := range p.Needs {
			p.Needs[i] = renamed[need]
		}
		all = append(all, p)
	}
	for _, p := range plan.Proposals {
		if p.Fresh && len(all) > len(pl.Setup.Services) {
			all = append(all, pl.serviceProposals(taken, "-"+p.ID)...)
		}
		all = append(all, p)
	}
	plan.Proposals = all
	return plan
}

// serviceProposals returns the commands that start the services in a new sandbox.
func (pl Planner) serviceProposals(taken map[string]bool, suffix string) []proposal.Proposal {
	list := slices.Clone(pl.Setup.Services)
	for i := range list {
		list[i].ID, list[i].Fresh = takeFreeID(taken, list[i].ID+suffix), true
	}
	return list
}

// takeFreeID returns id, changed if it is taken, and takes it.
func takeFreeID(taken map[string]bool, id string) string {
	for taken[id] {
		id = "fumehood-" + id
	}
	taken[id] = true
	return id
}

// setupProposal returns a step as it is run. The end of an optional one does not matter.
func setupProposal(step setup.Step) proposal.Proposal {
	p := step.Proposal
	p.Origin = proposal.OriginSetup
	if step.Optional {
		p.Run, p.Argv = order.AnalyzeProposal(p).Canonical+" || true", nil
	}
	return p
}

// Propose returns proposals as a proposer's, whatever they say of themselves: in Directory, and with
// Limits if they request none.
func (pl Planner) Propose(proposals ...proposal.Proposal) []proposal.Proposal {
	list := slices.Clone(proposals)
	for i := range list {
		p := &list[i]
		if p.Origin = ""; p.Limits == nil {
			p.Limits = pl.Limits
		}
		if pl.Directory != "" && pl.Directory != "." {
			p.Cwd = path.Join(pl.Directory, p.Cwd)
		}
	}
	return list
}
