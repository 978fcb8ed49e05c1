// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package secrets

import "testing"

// With the tag nightly this test tries all of its cases: see
// pkg/internal/sample.

func TestNightlyMasksInEveryForm(t *testing.T) { TestMasksInEveryForm(t) }
func TestNightlySlowText(t *testing.T)         { TestSlowText(t) }
