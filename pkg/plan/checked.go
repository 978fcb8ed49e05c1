// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Checked returns p as it would be read from a plan. The error says where it is not valid.
func Checked(p proposal.Proposal) (proposal.Proposal, error) {
	document, err := Encode(proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{p}})
	if err != nil {
		return p, err
	}
	decoded, problems := Decode(document, "proposal.json")
	if problems = append(problems, decoded.Refused()...); len(problems) > 0 {
		return p, errors.New(problems[0].Path + ": " + problems[0].Message)
	}
	return decoded.Proposals[0], nil
}

// Encode returns the document of p, in JSON, which Decode reads if p is valid.
func Encode(p proposal.Plan) ([]byte, error) {
	return json.Marshal(writtenPlan{Schema: p.Schema, Proposer: p.Proposer, Proposals: writeProposals(p.Proposals)})
}

// A writtenPlan is a plan as a document has it.
type writtenPlan struct {
	Schema    string            `json:"schema"`
	Proposer  string            `json:"proposer,omitempty"`
	Proposals []writtenProposal `json:"proposals"`
}

// A writtenProposal is a proposal as a plan has it: new-sandbox is called fresh in reports,
// logs and policy input.
type writtenProposal struct {
	proposal.Proposal
	Fresh   bool `json:"fresh,omitempty"` // always false: it hides the field of Proposal
	Sandbox bool `json:"new-sandbox,omitempty"`
}

func writeProposals(list []proposal.Proposal) []writtenProposal {
	out := []writtenProposal{}
	for _, p := range list {
		out = append(out, writtenProposal{Proposal: p, Sandbox: p.Fresh})
	}
	return out
}
