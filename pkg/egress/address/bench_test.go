// SPDX-License-Identifier: Apache-2.0

//go:build linux

package address

import (
	"net/netip"
	"testing"
)

// BenchmarkDialerCheck is what a connection pays for each address of its name, more than once.
func BenchmarkDialerCheck(b *testing.B) {
	d, a := NewDialer(nil), netip.MustParseAddr("8.8.8.8")
	for b.Loop() {
		if err := d.Check(a, false); err != nil {
			b.Fatal(err)
		}
	}
}
