// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package explain_test

import "testing"

// With the tag e2e this test tries all of its cases: see pkg/internal/sample.

func TestWholeAlternativesAreAllowed(t *testing.T) { TestAlternativesAreAllowed(t) }
