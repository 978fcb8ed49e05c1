// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/policy"
)

// The shipped policy is held to what others are held to.
func TestShippedPolicyHasNoProblems(t *testing.T) {
	r, err := policy.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Errorf("%s: %s %s: %s (%s)", p.Place(), p.Severity, p.Code, p.Message, p.Hint)
	}
}

// unlinted are e's warnings but for those of style.
func unlinted(e *policy.Engine) []string {
	return slices.DeleteFunc(e.Warnings(), func(w string) bool { return strings.HasPrefix(w, "policy.lint") })
}
