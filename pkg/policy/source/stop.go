// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The stable codes of this package's StopErrors, besides those of package policy.
const (
	CodeSource    = "policy.source"    // the spec, or the place that it names, cannot be used
	CodeFetch     = "policy.fetch"     // a server did not give the bundle
	CodeDigest    = "policy.digest"    // not what was pinned, or nothing is pinned
	CodeBundle    = "policy.bundle"    // not a bundle that policy may come in
	CodeSignature = "policy.signature" // no signature of the key, or one that does not cover all
	CodeKey       = "policy.key"       // the key cannot be used
	CodeRevision  = "policy.revision"  // older than the minimum, or not to be ordered

	codeSymlink  = "policy.symlink"
	codeMissing  = "policy.missing"
	codeTooLarge = "policy.too-large"
)

func stop(code, hint string, err error, format string, a ...any) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: fmt.Sprintf(format, a...), Hint: hint, Err: err}
}

// asStop keeps a StopError as it is and gives anything else a code.
func asStop(err error, code, hint, format string, a ...any) error {
	var already *proposal.StopError
	if err == nil || errors.As(err, &already) {
		return err
	}
	return stop(code, hint, err, format, a...)
}

// Digest is "sha256:" and the hex SHA-256 of data, as a spec pins it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func wrongDigest(p parsed, got string) error {
	return stop(CodeDigest, "if the bundle was meant to change, look at the new one and pin its digest", nil,
		"%s has the digest %s, not %s", p.shown, got, p.digest)
}
