// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package link

import "testing"

// With the tag nightly this test runs all its cases: see internal/kit/sample.

func TestNightlyManyConnectionsStayBounded(t *testing.T) { TestManyConnectionsStayBounded(t) }
func TestNightlyHostKernelStaysOutOfTheSandboxesConnections(t *testing.T) {
	TestHostKernelStaysOutOfTheSandboxesConnections(t)
}
