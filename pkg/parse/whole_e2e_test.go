// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package parse

import "testing"

// With the tag e2e this test tries all of its cases: see pkg/internal/sample.

func TestWholeSlots(t *testing.T) { TestSlots(t) }
func TestWholeDials(t *testing.T) { TestDials(t) }
