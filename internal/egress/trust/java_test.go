// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"encoding/hex"
	"testing"
)

// The frame matches Java's to the byte. The end-to-end test of Maven shows that Java
// accepts the certificates in it.
func TestJavaStoreFrame(t *testing.T) {
	// The store that keytool leaves after deleting the last entry.
	const want = "feedfeed0000000200000000e2686e45fb43dfa4d992dd41ceb6b21c6330d792"
	if got := hex.EncodeToString(JavaStore(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
