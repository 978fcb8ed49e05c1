// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
)

// Runs all of the texts, of which TestE2EStarts runs a part. That starts were decided
// and refused shows that the texts reach the gate.
func TestNightlyEveryStart(t *testing.T) {
	var decided, refused atomic.Int64
	t.Run("texts", func(t *testing.T) {
		for chunk := range slices.Chunk(startTexts(t), 200) {
			t.Run(fmt.Sprintf("%.40q", chunk[0]), func(t *testing.T) {
				t.Parallel()
				d, r := checkStarts(t, chunk)
				decided.Add(int64(d))
				refused.Add(int64(r))
			})
		}
	})
	t.Logf("%d starts were decided and %d refused", decided.Load(), refused.Load())
	if decided.Load() < 100 || refused.Load() < 50 {
		t.Error("that is fewer than the texts try")
	}
}
