// SPDX-License-Identifier: Apache-2.0

package points

import "github.com/fumehood/fumehood/pkg/proposal"

// DenyReason returns a Decision that denies for one reason.
func DenyReason(rule, message, suggestion string) proposal.Decision {
	return proposal.Decision{
		Effect: proposal.Deny,
		Rules:  []string{rule},
		Reasons: []proposal.Reason{{Rule: rule, Effect: proposal.Deny, Message: message, Suggestion: suggestion,
			Command: -1}},
	}
}

// ExecBuilt is the kind in Grant.Exec for commands that run the repository's code.
const ExecBuilt = "built"
