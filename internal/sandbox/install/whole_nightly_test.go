// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package install

import "testing"

func TestNightlyPruneTogether(t *testing.T) { TestPruneTogether(t) }
