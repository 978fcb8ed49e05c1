// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package parse

import "testing"

// With the build tag e2e these tests try all of their cases: see pkg/internal/sample.

func TestWholeSlots(t *testing.T)                  { TestSlots(t) }
func TestWholeDials(t *testing.T)                  { TestDials(t) }
func TestWholeSamplesAgainstBash(t *testing.T)     { TestSamplesAgainstBash(t) }
func TestWholeRandomTextsAgainstBash(t *testing.T) { TestRandomTextsAgainstBash(t) }
func TestWholeSlotsAreDangerous(t *testing.T)      { TestSlotsAreDangerous(t) }
