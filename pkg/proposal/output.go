// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"slices"
	"strings"
)

// An Outgoing is one thing that is about to leave: the input of policy's decision point
// fumehood.output. It says what was found in it and never holds any of it.
type Outgoing struct {
	Command string `json:"command"` // id of the proposal; "" of what tells of the whole run
	Kind    string `json:"kind"`    // an Outgoing constant
	Name    string `json:"name"`    // of a declared file: its path in the workspace; untrusted text
	Size    int64  `json:"size"`    // bytes, with what was found replaced by its markers
	Binary  bool   `json:"binary"`  // it is no text, so nothing in it can be replaced
	// Secrets are what looks like one, by the rule that found it.
	Secrets []Redaction `json:"secrets"`
	// Masked counts values that we were told to mask.
	Masked int `json:"masked"`
	// Encodings are the forms that those had: "plain", "base64", "hex" …, sorted.
	Encodings []string `json:"encodings"`
}

// The kinds of Outgoing.
const (
	OutgoingStdout  = "stdout"
	OutgoingStderr  = "stderr"
	OutgoingFile    = "output" // a file that the proposal declared
	OutgoingReport  = "report" // all that the report tells of commands' output
	OutgoingComment = "comment"
)

// A Redaction counts what was found by one rule and replaced by a marker, or withheld
// with what it was in.
type Redaction struct {
	// Rule is a detector's, "github-pat", or "mask:NAME" for the value that NAME holds.
	Rule  string `json:"rule"`
	Count int    `json:"count"`
}

// MaskPrefix begins the Rule of a Redaction that stands for a value we were told to mask.
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

// CountRedactions is how many of list there are, and how many of them are values that
// we were told to mask.
func CountRedactions(list []Redaction) (all, masked int) {
	for _, r := range list {
		all += r.Count
		if strings.HasPrefix(r.Rule, MaskPrefix) {
			masked += r.Count
		}
	}
	return all, masked
}

// An OutputDecision is policy's answer about one Outgoing.
type OutputDecision struct {
	Effect Effect   `json:"effect"` // Allow, or Deny: the whole of it is withheld
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first that speaks against it
	// Redact names the rules of Outgoing.Secrets whose finds are replaced. Values that
	// we were told to mask are, whatever it says.
	Redact   []string `json:"redact"`
	Observed bool     `json:"observed,omitempty"` // it would have been withheld
}
