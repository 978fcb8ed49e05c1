// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/audit"
)

// Text that is not a log does not verify. Trust names the key or the checkpoint that the report of the run has.
func ExampleVerify() {
	_, err := audit.Verify(strings.NewReader("{\"not\":\"a log\"}\n"), audit.Trust{})
	fmt.Println(err != nil)
	// Output: true
}
