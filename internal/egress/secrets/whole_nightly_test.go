// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package secrets

import "testing"

// With the tag nightly these tests try all of their cases: see
// internal/kit/sample.

func TestNightlyMasksInEveryForm(t *testing.T) { TestMasksInEveryForm(t) }
func TestNightlySlowText(t *testing.T)         { TestSlowText(t) }
func TestNightlyLiveByParts(t *testing.T)      { TestLiveByParts(t) }
