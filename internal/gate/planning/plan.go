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
	Whole     bool             // all of Setup is run, also what a plan does not touch
}

// Plan returns plan as it is decided, and the part of Setup that is in it. The proposals are as Propose
// returns them, in the same order: a command may read what one before it wrote. Before the first that waits
// for set-up (see order.FindSetupNeed) are the commands of the part, whose ids do not repeat the plan's. Its
// services are started before them, and again before each later proposal that requests a new sandbox. A Setup
// with a step that was not detected comes before all proposals: what such a step makes is not known.
func (pl Planner) Plan(plan proposal.Plan) (proposal.Plan, setup.Setup) {
	plan.Proposals = pl.Propose(plan.Proposals...)
	first, touches := len(plan.Proposals), []setup.Touch{}
	for i, p := range plan.Proposals {
		need := order.FindSetupNeed(p, order.AnalyzeProposal(p))
		touches = append(touches, need.Touches...)
		if need.Waits {
			first = min(first, i)
		}
	}
	if pl.Whole {
		touches = append(touches, setup.Everything...)
	}
	if pl.Setup.RunsFirst() {
		first = 0
	}
	part := pl.Setup.ChoosePart(touches)
	return insertSetup(part, plan, first), part
}

// insertSetup returns plan with the commands of s before the proposal at index first.
func insertSetup(s setup.Setup, plan proposal.Plan, first int) proposal.Plan {
	taken, renamed := map[string]bool{}, map[string]string{}
	for _, p := range plan.Proposals {
		taken[p.ID] = true
	}
	all := append(slices.Clone(plan.Proposals[:first]), serviceProposals(s, taken, "")...)
	for _, step := range s.Steps {
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
	for _, p := range plan.Proposals[first:] {
		if p.Fresh && len(all) > len(s.Services) {
			all = append(all, serviceProposals(s, taken, "-"+p.ID)...)
		}
		all = append(all, p)
	}
	plan.Proposals = all
	return plan
}

// serviceProposals returns the commands that start the services of s in a new sandbox.
func serviceProposals(s setup.Setup, taken map[string]bool, suffix string) []proposal.Proposal {
	list := slices.Clone(s.Services)
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
