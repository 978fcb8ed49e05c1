// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"encoding/hex"
	"testing"
)

// The frame is Java's to the byte; that Java takes the certificates in it is shown by
// the end-to-end test of Maven.
func TestTruststoreFrame(t *testing.T) {
	// What keytool leaves of a store when it deletes the last entry.
	const want = "feedfeed0000000200000000e2686e45fb43dfa4d992dd41ceb6b21c6330d792"
	if got := hex.EncodeToString(truststore(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
