// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package relay

import "testing"

// With the tag nightly these tests run all their cases: see internal/kit/sample.

func TestNightlyBigBodiesStream(t *testing.T) { TestBigBodiesStream(t) }
