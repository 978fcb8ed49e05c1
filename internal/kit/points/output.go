// SPDX-License-Identifier: Apache-2.0

package points

import "github.com/fumehood/fumehood/pkg/proposal"

// An Outgoing is one thing that is about to leave: the input of policy's decision point
// fumehood.output. It describes what was found in it but contains none of it.
type Outgoing struct {
	Command string `json:"command"` // ID of the proposal; "" if it concerns the whole run
	Kind    string `json:"kind"`    // an Outgoing constant
	Name    string `json:"name"`    // of a declared file: its path in the workspace; untrusted text
	Size    int64  `json:"size"`    // bytes, with finds replaced by their markers
	Binary  bool   `json:"binary"`  // it is not a text, so nothing in it can be replaced
	// Secrets count text that looks like a secret, by the rule that found it.
	Secrets []proposal.Redaction `json:"secrets"`
	// Masked counts finds of values to mask.
	Masked int `json:"masked"`
	// Encodings are the forms of those finds: "plain", "base64", "hex" …, sorted.
	Encodings []string `json:"encodings"`
}

// The kinds of Outgoing.
const (
	OutgoingStdout  = "stdout" // also what the files of test runners say
	OutgoingStderr  = "stderr"
	OutgoingFile    = "output" // a file that the proposal declared
	OutgoingReport  = "report" // everything that the report contains of commands' output
	OutgoingComment = "comment"
)

// An OutputDecision is policy's decision about one Outgoing.
type OutputDecision struct {
	Effect proposal.Effect  `json:"effect"` // Allow, or Deny: all of it is withheld
	Rules  []string         `json:"rules"`
	Reason *proposal.Reason `json:"reason,omitempty"` // the first reason against it
	// Redact names the rules of Outgoing.Secrets whose finds are replaced. Values to mask
	// are always replaced.
	Redact   []string `json:"redact"`
	Observed bool     `json:"observed,omitempty"` // it would have been withheld
}
