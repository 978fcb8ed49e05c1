// SPDX-License-Identifier: Apache-2.0

package proposal

import "encoding/json"

// A Case is what an author of policy wants to be decided about one thing: a Proposal,
// somebody's wish that it run, or both; or one program, step of a connection or event.
type Case struct {
	Name     string    `json:"name"`
	Why      string    `json:"why,omitempty"`
	Proposal *Proposal `json:"proposal,omitempty"`
	// Inputs are laid over an ordinary input: those fields that differ, by decision point
	// without "fumehood.": "trigger", "exec", "egress", "event" or "output".
	Inputs   map[string]json.RawMessage `json:"inputs,omitempty"`
	Want     string                     `json:"want,omitempty"`      // "allow", "deny", "ask", or "" for any
	Rules    []string                   `json:"rules,omitempty"`     // each must have spoken; one that ends in a dot stands for all that begin with it
	NotRules []string                   `json:"not_rules,omitempty"` // none may have spoken
	Granted  *Limits                    `json:"granted,omitempty"`   // the limits that an allow must carry; those that are 0 are not looked at
	Line     int                        `json:"line"`
}

// CasesSchema names the version of the format of cases.
const CasesSchema = "fumehood.cases/v1"
