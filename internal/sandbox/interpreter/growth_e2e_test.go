// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import (
	"slices"
	"testing"
	"time"
)

func TestE2EGrowth(t *testing.T) { checkGrowth(t, 2_000) }

// A trivial cell, from Execute to its outcome.
func BenchmarkCell(b *testing.B) {
	for _, l := range languages {
		b.Run(string(l), func(b *testing.B) {
			s := newSession(b, l, "")
			var took []time.Duration
			for b.Loop() {
				took = append(took, s.run(b, words[l]["set"]).Took)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}

// From the start of the process to hello.
func BenchmarkStart(b *testing.B) {
	for _, l := range languages {
		b.Run(string(l), func(b *testing.B) {
			for b.Loop() {
				newSession(b, l, "").Close()
			}
		})
	}
}
