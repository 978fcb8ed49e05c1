// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package secrets

import "testing"

// With the build tag e2e this test tries all of its cases: see
// pkg/internal/sample.

func TestWholeMasksInEveryForm(t *testing.T) { TestMasksInEveryForm(t) }
