// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Names below a granted suffix carry information out: a run has a budget of them.
func TestNamesBelow(t *testing.T) {
	var n NamesBelow
	ask := func(name, below string) proposal.EgressDecision {
		return n.Limit(proposal.Egress{Kind: points.EgressLookup, Name: name}, proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"egress.lookup"}, Below: below})
	}
	for i := range maxNamesBelow {
		name := fmt.Sprintf("n%d.example.org", i)
		for range 2 {
			if d := ask(name, ".example.org"); d.Effect != proposal.Allow {
				t.Fatalf("%s: %+v", name, d)
			}
		}
	}
	if d := ask("more.example.org", ".example.org"); d.Effect != proposal.Deny || d.Reason == nil || d.Reason.Rule != "egress.names" || d.Reason.Message != "this run has looked up 64 names below example.org" {
		t.Errorf("%+v", d)
	}
	for name, below := range map[string]string{"n0.example.org": ".example.org", "more.example.net": ".example.net", "granted.example.org": ""} {
		if d := ask(name, below); d.Effect != proposal.Allow {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := n.Limit(proposal.Egress{Name: "x"}, proposal.EgressDecision{Effect: proposal.Deny, Below: ".y"}); d.Effect != proposal.Deny || n.looked[".y"] != nil {
		t.Errorf("a refused name counts: %+v", d)
	}
}
