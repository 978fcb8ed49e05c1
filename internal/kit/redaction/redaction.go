// SPDX-License-Identifier: Apache-2.0

// Package redaction counts what was redacted.
package redaction

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaskPrefix is the prefix of the Rule of a Redaction of a value to mask.
const MaskPrefix = "mask:"

// Add returns the counts of both lists, sorted by rule.
func Add(a, b []proposal.Redaction) []proposal.Redaction {
	sums := map[string]int{}
	for _, r := range slices.Concat(a, b) {
		sums[r.Rule] += r.Count
	}
	var list []proposal.Redaction
	for rule, n := range sums {
		list = append(list, proposal.Redaction{Rule: rule, Count: n})
	}
	slices.SortFunc(list, func(a, b proposal.Redaction) int { return strings.Compare(a.Rule, b.Rule) })
	return list
}

// Of returns the finds in everything that a command printed and left.
func Of(r proposal.Result) []proposal.Redaction {
	found := Add(slices.Concat(r.Stdout.Redacted, r.TestResults.Redacted), r.Stderr.Redacted)
	for _, o := range r.Outputs {
		found = Add(found, o.Redacted)
	}
	return found
}

// Count returns the total of list, and how many of them are values to mask.
func Count(list []proposal.Redaction) (all, masked int) {
	for _, r := range list {
		all += r.Count
		if strings.HasPrefix(r.Rule, MaskPrefix) {
			masked += r.Count
		}
	}
	return all, masked
}
