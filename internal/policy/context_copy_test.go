// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Engine with another context decides as the first does, with the tools of the configuration.
func TestWithContextKeepsTheRest(t *testing.T) {
	e, err := policy.New(t.Context(), policy.Options{AllowTools: []string{"acmelint"}, Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.WithContext(proposal.Context{Repository: "o/r"})
	if err != nil || other.Digest() != e.Digest() || other.Context().Repository != "o/r" {
		t.Fatalf("%v, %+v", err, other.Context())
	}
	for _, run := range []string{"acmelint /w/a", "acmelint /workspace/a"} {
		p := proposal.Proposal{ID: "t", Run: run}
		want, err := e.Decide(t.Context(), p, parse.Analyze(p))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := other.Decide(t.Context(), p, parse.Analyze(p)); err != nil || got.Effect != want.Effect {
			t.Errorf("%s: %v, %v; want %v", run, got.Effect, err, want.Effect)
		}
		if allowed := run == "acmelint /w/a"; (want.Effect == proposal.Allow) != allowed {
			t.Errorf("%s: %v by %q", run, want.Effect, want.Rules)
		}
	}
}
