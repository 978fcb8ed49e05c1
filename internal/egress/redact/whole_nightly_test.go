// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package redact

import "testing"

// With the tag nightly these tests run all their cases: see internal/kit/sample.

func TestNightlyRawTogether(t *testing.T) { TestRawTogether(t) }
