// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package post_test

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyRandomPositions(t *testing.T) { TestRandomPositions(t) }
