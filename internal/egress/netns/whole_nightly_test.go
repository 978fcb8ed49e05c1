// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package netns

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyMakeIsQuiet(t *testing.T) { TestMakeIsQuiet(t) }
