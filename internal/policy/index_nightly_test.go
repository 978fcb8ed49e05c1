// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package policy

import "testing"

// With the tag nightly this test tries all of its cases: see internal/kit/sample.
func TestNightlyIndexChangesNoAnswer(t *testing.T) { TestIndexChangesNoAnswer(t) }
