// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Checked returns p as it would be read from a plan. The error says where it is not valid.
func Checked(p proposal.Proposal) (proposal.Proposal, error) {
	document, err := json.Marshal(map[string]any{"schema": "fumehood.plan/v1", "proposals": []proposal.Proposal{p}})
	if err != nil {
		return p, err
	}
	decoded, problems := Decode(document, "proposal.json")
	if problems = append(problems, decoded.Refused()...); len(problems) > 0 {
		return p, errors.New(problems[0].Path + ": " + problems[0].Message)
	}
	return decoded.Proposals[0], nil
}
