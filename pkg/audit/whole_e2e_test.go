// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package audit

import "testing"

// With the build tag e2e these tests try all of their cases: see
// pkg/internal/sample.

func TestWholeFlipEveryByte(t *testing.T)           { TestFlipEveryByte(t) }
func TestWholeRemoveOrInsertEveryByte(t *testing.T) { TestRemoveOrInsertEveryByte(t) }
func TestWholeCutAtEveryByte(t *testing.T)          { TestCutAtEveryByte(t) }
