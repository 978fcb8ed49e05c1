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

// SumByRule returns the counts of both lists, sorted by rule.
func SumByRule(a, b []proposal.Redaction) []proposal.Redaction {
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

// FindsIn returns the finds in everything that a command printed and left.
func FindsIn(r proposal.Result) []proposal.Redaction {
	found := SumByRule(slices.Concat(r.Stdout.Redacted, r.TestResults.Redacted), r.Stderr.Redacted)
	for _, o := range r.Outputs {
		found = SumByRule(found, o.Redacted)
	}
	return found
}

// CountFinds returns the total of list, and how many of them are values to mask.
func CountFinds(list []proposal.Redaction) (all, masked int) {
	for _, r := range list {
		all += r.Count
		if strings.HasPrefix(r.Rule, MaskPrefix) {
			masked += r.Count
		}
	}
	return all, masked
}
