// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain runs the garbage collector less often: the tests produce much garbage,
// and little of the memory stays in use.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
