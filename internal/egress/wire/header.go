// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var word = pattern.New(`^[A-Za-z0-9_-]+$`)

// IsWord reports whether name can be a header's or a parameter's of a credential.
func IsWord(name string) bool { return word.MatchString(name) }

// framing are the headers that the gateway itself needs, besides those that begin with Proxy-.
var framing = []string{"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Expect", "Host",
	"Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// IsCredentialHeader reports whether a credential may be in the header.
func IsCredentialHeader(name string) bool {
	canonical := http.CanonicalHeaderKey(name)
	return IsWord(name) && !slices.Contains(framing, canonical) && !strings.HasPrefix(canonical, "Proxy-")
}
