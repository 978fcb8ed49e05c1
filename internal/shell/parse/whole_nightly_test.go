// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package parse

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlySlots(t *testing.T)                  { TestSlots(t) }
func TestNightlyDials(t *testing.T)                  { TestDials(t) }
func TestNightlySamplesAgainstBash(t *testing.T)     { TestSamplesAgainstBash(t) }
func TestNightlyRandomTextsAgainstBash(t *testing.T) { TestRandomTextsAgainstBash(t) }
func TestNightlySlotsAreDangerous(t *testing.T)      { TestSlotsAreDangerous(t) }
func TestNightlyCorpusCells(t *testing.T)            { TestCorpusCells(t) }
func TestNightlyEvaluationAgainstBash(t *testing.T)  { TestEvaluationAgainstBash(t) }
