// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package audit

import "testing"

// With the tag nightly these tests try all of their cases: see
// internal/kit/sample.

func TestNightlyFlipEveryByte(t *testing.T)           { TestFlipEveryByte(t) }
func TestNightlyRemoveOrInsertEveryByte(t *testing.T) { TestRemoveOrInsertEveryByte(t) }
func TestNightlyCutAtEveryByte(t *testing.T)          { TestCutAtEveryByte(t) }
