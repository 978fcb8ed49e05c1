// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A plan that claims to be set-up, as a Go caller's could, is decided as a proposer's.
func TestOriginIsNotBelieved(t *testing.T) {
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	p := proposal.Proposal{ID: "a", Run: "npm ci", Phase: proposal.PhaseSetup, Network: []string{"registry:npm"}, Origin: proposal.OriginSetup}
	records, err := g.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
	if err != nil || records[0].Decision.Effect != proposal.Deny || records[0].Proposal.Origin != "" {
		t.Errorf("%+v, %v", records, err)
	}
	if p.Origin != proposal.OriginSetup {
		t.Error("the caller's plan was changed")
	}
}
