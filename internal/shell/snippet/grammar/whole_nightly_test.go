// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package grammar

import "testing"

// With the tag nightly this test tries all of its cases: see internal/kit/sample.

func TestNightlyBombs(t *testing.T) { TestBombs(t) }
