// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package link

import "testing"

// With the tag e2e this test runs all its cases: see pkg/internal/sample.

func TestWholeManyConnectionsStayBounded(t *testing.T) { TestManyConnectionsStayBounded(t) }
