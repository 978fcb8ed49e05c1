// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package interpreter

import "testing"

func TestNightlyGrowth(t *testing.T) { checkGrowth(t, 10_000) }
