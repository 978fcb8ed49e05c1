// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package sandbox

import "testing"

// With the tag e2e these tests try as often as they can: see pkg/internal/sample.

func TestWholeSwap(t *testing.T)      { TestSwap(t) }
func TestWholeManyExecs(t *testing.T) { TestManyExecs(t) }
