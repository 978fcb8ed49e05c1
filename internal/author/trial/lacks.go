// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const hintNoTests = `write a file cases.yaml beside the rules:
  schema: fumehood.cases/v1
  cases:
    - {name: tests may run, run: go test ./..., want: allow}`

// CheckSufficient returns why the tests are not sufficient, whether they passed or not: none ran, a
// layer's tests reach none of its rules (policy.no-tests), or they reach less than
// threshold percent of all (policy.coverage). only is the pattern for names, or "". Each
// hint is trusted text and may have several lines.
func (r Report) CheckSufficient(only string, threshold float64) []proposal.StopError {
	var list []proposal.StopError
	switch {
	case r.CountRan() == 0 && only != "":
		list = append(list, noTests(fmt.Sprintf("no test's name matches %q", only), "list the names with -v"))
	case only == "":
		for _, l := range r.Layers {
			list = append(list, r.layerLacks(l)...)
		}
	}
	if reached := r.Coverage(); reached < threshold {
		list = append(list, proposal.StopError{Code: "policy.coverage",
			Message: fmt.Sprintf("tests reach %.1f%% of the rules, less than %g%%", reached, threshold),
			Hint:    "list the rules that no test reaches: fumehood policy test --coverage"})
	}
	return list
}

func (r Report) layerLacks(l LayerReport) []proposal.StopError {
	if l.Tests == 0 {
		return []proposal.StopError{noTests(fmt.Sprintf("the policy layer %q has no test that runs", l.Layer),
			hintNoTests)}
	}
	if r.Failed == 0 && r.IsUntouched(l.Layer) {
		return []proposal.StopError{noTests(fmt.Sprintf("the tests of the policy layer %q reach none of its rules, so they prove nothing", l.Layer),
			"write a test for each rule: match in its METADATA, or rule in a case")}
	}
	return nil
}

func noTests(message, hint string) proposal.StopError {
	return proposal.StopError{Code: "policy.no-tests", Message: message, Hint: hint}
}
