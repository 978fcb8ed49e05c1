// SPDX-License-Identifier: Apache-2.0

package text

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]proposal.Bytes{"1": 1, "4096": 4096, "512MiB": 512 * proposal.MiB, "2 GB": 2e9, "1TiB": maxBytes, "5B": 5} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "01", "1.5GB", "1 XB", "2TiB", "9999999999999TiB", "99999999999999", "1GiB ", " 1", "1GiB\n"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
