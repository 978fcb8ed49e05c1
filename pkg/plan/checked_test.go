// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// Each proposal that a plan can have is the same after it was checked on its own.
func TestCheckedLosesNothing(t *testing.T) {
	sandboxes := 0
	for _, p := range mustDecode(t, golden.Read(t, "testdata/full.yaml"), "full.yaml").Proposals {
		p.Needs = nil // the others are not in the plan
		checked, err := Checked(p)
		if diff := cmp.Diff(p, checked); diff != "" || err != nil {
			t.Errorf("%s: %v (-given +checked):\n%s", p.ID, err, diff)
		}
		if p.Fresh {
			sandboxes++
		}
	}
	if sandboxes == 0 {
		t.Error("no proposal asks for a new sandbox")
	}
}
