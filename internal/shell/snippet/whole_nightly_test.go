// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package snippet

import "testing"

// With the tag nightly these tests run all their cases: see internal/kit/sample.

func TestNightlyDeepNames(t *testing.T) { TestDeepNames(t) }
