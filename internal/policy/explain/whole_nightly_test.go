// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package explain_test

import "testing"

// With the tag nightly this test tries all of its cases: see internal/kit/sample.

func TestNightlyAlternativesAreAllowed(t *testing.T) { TestAlternativesAreAllowed(t) }
