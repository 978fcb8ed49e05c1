// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// People copy from the demo's plan, so it must be accepted and must fit the schema.
func TestDemoPlan(t *testing.T) {
	const file = "../../testdata/demo/plan.yaml"
	p := mustDecode(t, golden.Read(t, file), file)
	if err := validate(t, golden.ReadSchema(t, published), encode(t, p)); err != nil {
		t.Error(err)
	}
	forms := map[string]bool{}
	for _, one := range p.Proposals {
		forms[one.Form()] = true
	}
	for _, form := range []string{"run", "argv", "code"} {
		if !forms[form] {
			t.Errorf("the demo shows no proposal with %s", form)
		}
	}
}
