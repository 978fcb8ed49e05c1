// SPDX-License-Identifier: Apache-2.0

// Package lanetest keeps long tests out of the short lane.
package lanetest

import "testing"

// SkipShort skips a test in the short lane: one that takes more than an eighth of a second.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("too long for the short lane; run without -short")
	}
}
