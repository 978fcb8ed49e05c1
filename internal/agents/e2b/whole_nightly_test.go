// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2b

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyCorpus(t *testing.T) { TestCorpus(t) }
