// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// BenchmarkLoad is what the first engine of a process costs: at most 30 ms.
func BenchmarkLoad(b *testing.B) {
	s, err := shipped()
	if err != nil {
		b.Fatal(err)
	}
	began := ProcessorTime()
	for b.Loop() {
		if _, err := compileLayer(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((ProcessorTime()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
