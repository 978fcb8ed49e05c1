// SPDX-License-Identifier: Apache-2.0

package proposal

import "encoding/json"

// A Case is a policy test by a policy author: the expected decision about a Proposal, a
// Trigger that requests its run, or both; or about one program, step of a connection or event.
type Case struct {
	Name     string    `json:"name"`
	Why      string    `json:"why,omitempty"`
	Proposal *Proposal `json:"proposal,omitempty"`
	// Inputs are merged over a default input. They contain the fields that differ, by
	// decision point without "fumehood.": "trigger", "exec", "egress", "event" or "output".
	Inputs   map[string]json.RawMessage `json:"inputs,omitempty"`
	Want     string                     `json:"want,omitempty"`      // "allow", "deny", "ask", or "" for any
	Rules    []string                   `json:"rules,omitempty"`     // each must apply; one that ends in a dot is a prefix
	NotRules []string                   `json:"not_rules,omitempty"` // none may apply
	Granted  *Limits                    `json:"granted,omitempty"`   // the limits that an allow must grant; zero fields are ignored
	Line     int                        `json:"line"`
}

// CasesSchema is the version of the cases format.
const CasesSchema = "fumehood.cases/v1"
