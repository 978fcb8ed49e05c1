// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package order_test

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyCutAnywhere(t *testing.T) { TestCutAnywhere(t) }
