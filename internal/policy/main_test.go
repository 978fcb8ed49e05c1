// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: there is much of it, and little that stays.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
