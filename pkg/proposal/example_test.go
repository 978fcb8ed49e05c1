// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A caller that prints a failure of its own gets code, message and hint.
func ExampleFailureOf() {
	err := fmt.Errorf("today: %w", &proposal.StopError{
		Code: "audit.full", Message: "no space to write the audit log", Hint: "free disk space", Err: errors.New("disk full"),
	})
	f := proposal.FailureOf(err)
	fmt.Println(f.Code)
	fmt.Println(f.Message)
	fmt.Println(f.Hint)
	// Output:
	// audit.full
	// no space to write the audit log: disk full
	// free disk space
}
