// SPDX-License-Identifier: Apache-2.0

// Package attestation checks that a Sigstore attestation is about an audit log, without a
// network.
//
// An attestation is an in-toto statement in a DSSE envelope. A Sigstore bundle has it together
// with the certificate of its signer and the proofs of when it was signed. The caller names a
// trusted root (the keys of one Sigstore instance) and the signer; nothing is fetched, so a key
// that was revoked after the trusted root was written is still accepted.
//
// What must be in a bundle follows from the trusted root. If it has transparency logs, one of
// them must have logged the statement. If it has logs of certificates, one of them must have
// promised to log the certificate. A time at which the certificate was valid is always
// necessary, from a transparency log or a timestamp authority of the trusted root.
//
// What the statement says about the log, its predicate, is not read. Its type is returned.
package attestation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// GitHubIssuer issues the tokens of GitHub Actions, with which its jobs get certificates.
const GitHubIssuer = "https://token.actions.githubusercontent.com"

// Limits of each file: its size in bytes, and how many JSON values it may have.
const (
	maxFile   = 1 << 20
	maxValues = 32
)

// Options name what is checked and what is trusted. All fields are necessary.
type Options struct {
	// Bundle is the path of one or more Sigstore bundles as JSON, one after another. One that
	// is about the log suffices.
	Bundle string
	// Root is the path of one or more trusted roots as JSON, one after another. Each is used
	// alone.
	Root string
	// Identity is the subject alternative name of the signer's certificate, exactly. In GitHub
	// Actions it is the URL of the workflow, with its ref.
	Identity string
	// Issuer is the OpenID Connect issuer in the certificate, exactly.
	Issuer string
}

// A Check is what a log must be attested by.
type Check struct {
	bundles []*bundle.Bundle
	roots   []*verify.Verifier
	signer  verify.PolicyOption
}

// Read reads the files that o names. At most 1 MiB and 32 values of each are read. Its error is
// a *proposal.StopError: attestation.not-readable, attestation.trusted-root or
// attestation.signer.
func Read(o Options) (*Check, error) {
	signer, err := verify.NewShortCertificateIdentity(o.Issuer, "", o.Identity, "")
	if err != nil {
		return nil, &proposal.StopError{Code: "attestation.signer", Message: "cannot check an attestation without its signer",
			Hint: "name the identity and the issuer of the certificate", Err: err}
	}
	c := &Check{signer: verify.WithCertificateIdentity(signer)}
	if c.bundles, err = read(o.Bundle, parseBundle); err != nil {
		return nil, &proposal.StopError{Code: "attestation.not-readable", Message: fmt.Sprintf("cannot read the attestation %q", o.Bundle),
			Hint: "name a Sigstore bundle, for example from gh attestation download", Err: err}
	}
	if c.roots, err = read(o.Root, parseRoot); err != nil {
		return nil, &proposal.StopError{Code: "attestation.trusted-root", Message: fmt.Sprintf("cannot read the trusted root %q", o.Root),
			Hint: "name a trusted root, for example from gh attestation trusted-root", Err: err}
	}
	return c, nil
}

// read parses each JSON value in the file at path. There is at least one.
func read[T any](path string, parse func([]byte) (T, error)) (all []T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	for values := json.NewDecoder(bytes.NewReader(data)); len(all) <= maxValues; {
		var value json.RawMessage
		if err := values.Decode(&value); errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		one, err := parse(value)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return nil, fmt.Errorf("it has more than %d values", maxValues)
}

func parseBundle(data []byte) (*bundle.Bundle, error) {
	b := new(bundle.Bundle)
	return b, b.UnmarshalJSON(data)
}

// parseRoot returns a verifier that requires what the package comment says.
func parseRoot(data []byte) (*verify.Verifier, error) {
	trusted, err := root.NewTrustedRootFromJSON(data)
	if err != nil {
		return nil, err
	}
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1), verify.WithoutStatementPredicate()}
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	return verify.NewVerifier(trusted, options...)
}
