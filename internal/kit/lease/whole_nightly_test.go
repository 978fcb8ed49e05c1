// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package lease_test

import "testing"

// With the tag nightly this test runs all rounds: see internal/kit/lease/leasetest.

func TestNightlyTogether(t *testing.T) { TestTogether(t) }
