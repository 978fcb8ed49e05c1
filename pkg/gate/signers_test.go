// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Who has signed another image, or a root without a digest, is no signer of the root.
func TestSignersAreOfTheRoot(t *testing.T) {
	given := []string{"https://acme.example/release"}
	for _, c := range []struct {
		root, signed string
		want         int
	}{{"sha256:a", "sha256:a", 1}, {"sha256:a", "sha256:b", 0}, {"sha256:a", "", 0}, {"", "", 0}} {
		got := withSigners(proposal.ContextImage{Digest: c.root}, proposal.ContextImage{Digest: c.signed, Signers: given})
		if len(got.Signers) != c.want || got.Digest != c.root {
			t.Errorf("%q signed as %q: %+v", c.root, c.signed, got)
		}
	}
}
