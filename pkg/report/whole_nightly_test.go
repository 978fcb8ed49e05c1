// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package report

import "testing"

// With the tag nightly these tests try all of their cases: see pkg/internal/sample.

func TestNightlyManyObservations(t *testing.T) { TestManyObservations(t) }
