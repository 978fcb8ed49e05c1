// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The stable codes of this package's StopErrors, besides those of package policy.
const (
	CodeSource    = "policy.source"    // the spec, or what it names, is invalid
	CodeFetch     = "policy.fetch"     // a server did not return the bundle
	CodeDigest    = "policy.digest"    // not the pinned digest, or none is pinned
	CodeBundle    = "policy.bundle"    // not a valid bundle
	CodeSignature = "policy.signature" // no signature by the key, or an incomplete one
	CodeKey       = "policy.key"       // the key is invalid
	CodeRevision  = "policy.revision"  // older than the minimum, or not comparable

	codeCopy     = "policy.copy" // the copy of a bundle cannot be written
	codeSymlink  = "policy.symlink"
	codeMissing  = "policy.missing"
	codeTooLarge = "policy.too-large"
)

func stopError(code, hint string, err error, format string, a ...any) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: fmt.Sprintf(format, a...), Hint: hint, Err: err}
}

// Digest is "sha256:" and the hex SHA-256 of data, as in a pinned spec.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func wrongDigest(p parsed, got string) error {
	return stopError(CodeDigest, "if the change of the bundle is intended, review the new one and pin its digest", nil,
		"%s has the digest %s, not %s", p.shown, got, p.digest)
}
