// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/plan"
)

// A mistake in one proposal leaves the others: only that one is refused.
func ExampleDecode() {
	p, problems := plan.Decode([]byte("schema: fumehood.plan/v1\nproposals:\n  - {id: test, run: go test ./...}\n  - {id: lint, rum: go vet}\n"), "plan.yaml")
	fmt.Println(len(problems), "problems in the document")
	for _, proposed := range p.Proposals {
		fmt.Println(proposed.ID, proposed.Run != "")
	}
	for range p.Refused() {
		fmt.Println("a problem of a proposal")
	}
	// Output:
	// 0 problems in the document
	// test true
	// lint false
	// a problem of a proposal
	// a problem of a proposal
}
