// SPDX-License-Identifier: Apache-2.0

package attestation

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/fumehood/fumehood/pkg/audit"
)

// The codes of an audit.VerifyError for a log that is sealed and not attested.
const (
	CodeInvalid = "attestation"          // not signed as the trusted root requires, altered, or not an attestation
	CodeSubject = "attestation-subject"  // the attestation is about other files
	CodeSigner  = "attestation-identity" // it is signed by another identity, or one of another issuer
)

// Inspect is audit.Inspect. A log that is sealed must also be attested: the SHA-256 of what was
// read must be a subject of a bundle. The key of an attested log is trusted.
func (c *Check) Inspect(log io.Reader) audit.Finding {
	sum := sha256.New()
	found := audit.Inspect(io.TeeReader(log, sum), audit.Trust{})
	if !found.Sealed() { // a sealed log was read to its end
		return found
	}
	by, fault := c.find(verify.WithArtifactDigest("sha256", sum.Sum(nil)))
	if fault != nil {
		found.State, found.Fault = audit.Broken, fault
		return found
	}
	found.Attested, found.KeyTrusted = by, true
	return found
}

// find returns the first attestation that is about the log, or what is wrong with the one that
// is nearest to that.
func (c *Check) find(log verify.ArtifactPolicyOption) (by audit.Attestation, fault *audit.VerifyError) {
	for _, b := range c.bundles {
		for _, v := range c.roots {
			by, refused := c.match(v, b, log)
			if refused == nil {
				return by, nil
			}
			if fault == nil || fault.Code == CodeInvalid {
				fault = refused
			}
		}
	}
	return by, fault
}

func (c *Check) match(v *verify.Verifier, b *bundle.Bundle, log verify.ArtifactPolicyOption) (by audit.Attestation, fault *audit.VerifyError) {
	result, err := v.Verify(b, verify.NewPolicy(log, c.signer))
	if err != nil {
		return by, c.explain(v, b, err)
	}
	if result.Statement == nil { // a signature of a file that says nothing about it
		return by, wrong(CodeInvalid, "invalid attestation: the bundle has no statement")
	}
	signer := result.Signature.Certificate
	return audit.Attestation{
		PredicateType: result.Statement.GetPredicateType(),
		Identity:      signer.SubjectAlternativeName, Issuer: signer.Issuer,
		Time: result.VerifiedTimestamps[0].Timestamp.UTC(),
	}, nil
}

// explain finds out which part of the policy b, which err refused, does not meet.
func (c *Check) explain(v *verify.Verifier, b *bundle.Bundle, err error) *audit.VerifyError {
	_, without := v.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), c.signer))
	var another *verify.ErrNoMatchingCertificateIdentity
	switch {
	case without == nil:
		return wrong(CodeSubject, "the attestation is not about this log: its SHA-256 is not a subject")
	case errors.As(without, &another):
		return wrong(CodeSigner, "the attestation is signed by another identity: %v", errors.Join(another.Unwrap()...))
	}
	return wrong(CodeInvalid, "invalid attestation: %s", noCause.Replace(err.Error()))
}

// noCause removes what sigstore-go prints for an error that has no cause.
var noCause = strings.NewReplacer("; error: %!w(<nil>)", "", ": %!w(<nil>)", "")

func wrong(code, format string, args ...any) *audit.VerifyError {
	return &audit.VerifyError{Code: code, Entry: -1, Message: fmt.Sprintf(format, args...)}
}
