// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import "testing"

// TestE2EScripts runs the scripts that take long or need other programs.
func TestE2EScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, listScripts(t, "testdata/script/e2e/*.txtar"), 1)
}
