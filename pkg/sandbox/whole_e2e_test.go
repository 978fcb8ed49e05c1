// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package sandbox

import "testing"

// With the tag e2e these tests make the full number of attempts: see
// pkg/internal/sample.

func TestWholeSwap(t *testing.T)      { TestSwap(t) }
func TestWholeManyExecs(t *testing.T) { TestManyExecs(t) }
