// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"slices"
	"strings"
)

// An Outgoing is one thing that is about to leave: the input of policy's decision point
// fumehood.output. It describes what was found in it but contains none of it.
type Outgoing struct {
	Command string `json:"command"` // ID of the proposal; "" if it concerns the whole run
	Kind    string `json:"kind"`    // an Outgoing constant
	Name    string `json:"name"`    // of a declared file: its path in the workspace; untrusted text
	Size    int64  `json:"size"`    // bytes, with finds replaced by their markers
	Binary  bool   `json:"binary"`  // it is not a text, so nothing in it can be replaced
	// Secrets count text that looks like a secret, by the rule that found it.
	Secrets []Redaction `json:"secrets"`
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

// A Redaction counts the finds of one rule that were replaced by a marker, or withheld
// with their text.
type Redaction struct {
	// Rule is a detector's, "github-pat", or "mask:NAME" for the value of the mask NAME.
	Rule  string `json:"rule"`
	Count int    `json:"count"` // how often it was found
}

// MaskPrefix is the prefix of the Rule of a Redaction of a value to mask.
const MaskPrefix = "mask:"

// AddRedactions returns the counts of both lists, sorted by rule.
func AddRedactions(a, b []Redaction) []Redaction {
	sums := map[string]int{}
	for _, r := range slices.Concat(a, b) {
		sums[r.Rule] += r.Count
	}
	var list []Redaction
	for rule, n := range sums {
		list = append(list, Redaction{Rule: rule, Count: n})
	}
	slices.SortFunc(list, func(a, b Redaction) int { return strings.Compare(a.Rule, b.Rule) })
	return list
}

// Redactions returns the finds in everything that a command printed and left.
func (r Result) Redactions() []Redaction {
	found := AddRedactions(slices.Concat(r.Stdout.Redacted, r.TestResults.Redacted), r.Stderr.Redacted)
	for _, o := range r.Outputs {
		found = AddRedactions(found, o.Redacted)
	}
	return found
}

// CountRedactions returns the total of list, and how many of them are values to mask.
func CountRedactions(list []Redaction) (all, masked int) {
	for _, r := range list {
		all += r.Count
		if strings.HasPrefix(r.Rule, MaskPrefix) {
			masked += r.Count
		}
	}
	return all, masked
}

// An OutputDecision is policy's decision about one Outgoing.
type OutputDecision struct {
	Effect Effect   `json:"effect"` // Allow, or Deny: all of it is withheld
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first reason against it
	// Redact names the rules of Outgoing.Secrets whose finds are replaced. Values to mask
	// are always replaced.
	Redact   []string `json:"redact"`
	Observed bool     `json:"observed,omitempty"` // it would have been withheld
}
