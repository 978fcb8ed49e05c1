// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"
)

// BenchmarkDialerCheck measures a check that each connection makes more than once for each
// address of its name.
func BenchmarkDialerCheck(b *testing.B) {
	d, a := NewDialer(nil), netip.MustParseAddr("8.8.8.8")
	for b.Loop() {
		if err := d.Check(a, false); err != nil {
			b.Fatal(err)
		}
	}
}
