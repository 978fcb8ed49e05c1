// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Progress is called for each proposal in plan order: twice for those that run, once for the
// others, also if nothing runs.
func TestProgress(t *testing.T) {
	plan := planOf("a", "b", "c", "d")
	plan.Proposals[3].Needs = []string{"c"}
	for _, c := range []struct {
		decide map[string]proposal.Effect
		want   []string
	}{
		{map[string]proposal.Effect{"b": proposal.Ask, "c": proposal.Allow, "d": proposal.Allow}, []string{"a refused", "b refused", "c begins", "c exited", "d not run"}},
		{nil, []string{"a refused", "b refused", "c refused", "d refused"}},
	} {
		w := &world{decide: c.decide, results: map[string]proposal.Result{"c": {Status: proposal.Exited, ExitCode: 1}}}
		h := w.stages()
		var got []string
		h.Progress = func(s Step) {
			words := "begins"
			if s.Refused {
				words = "refused"
			} else if s.Result != nil {
				words = s.Result.Status.String()
			}
			got = append(got, fmt.Sprint(s.Proposal, " ", words))
		}
		if _, err := h.Run(t.Context(), plan, proposal.Run{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
