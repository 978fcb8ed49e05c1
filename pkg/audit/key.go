// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Signer signs checkpoints with one Ed25519 key. Printing it reveals no secret.
type Signer struct {
	signer note.Signer
	key    string
}

// Key returns the verifier key, as sumdb/note writes it.
func (s *Signer) Key() string { return s.key }

// String returns the verifier key.
func (s *Signer) String() string { return s.key }

// NewSigner reads a signer key as sumdb/note's GenerateKey writes it. Only Ed25519
// keys are accepted. The error does not quote the key.
func NewSigner(text string) (*Signer, error) {
	signer, err := note.NewSigner(text)
	if err != nil {
		return nil, keyError("the signing key is malformed", nil)
	}
	if !validName(signer.Name()) {
		return nil, keyError("the signing key's name has characters that a log cannot contain", nil)
	}
	// PRIVATE+KEY+name+hash+base64; base64 may contain a plus too.
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", 5)[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return nil, keyError("the signing key is malformed", nil)
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	key, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return nil, keyError("the signing key is malformed", nil)
	}
	return &Signer{signer: signer, key: key}, nil
}

// NewExternalSigner returns a Signer whose private key is elsewhere, such as in a hardware module. sign returns
// the raw signature of a message; a log calls it for each checkpoint. What it returns is verified with public:
// a signature of another key is an error, and nothing is written.
func NewExternalSigner(
	name string, public ed25519.PublicKey, sign func(message []byte) ([]byte, error),
) (*Signer, error) {
	key, err := note.NewEd25519VerifierKey(name, public)
	if err != nil {
		return nil, keyError("the public key of the external signer is malformed", err)
	}
	verifier, err := parseKey(key)
	if err != nil {
		return nil, keyError("the name of the external signer's key is invalid", err)
	}
	return &Signer{signer: externalSigner{verifier, sign}, key: key}, nil
}

type externalSigner struct {
	note.Verifier
	sign func([]byte) ([]byte, error)
}

func (s externalSigner) Sign(message []byte) ([]byte, error) {
	signature, err := s.sign(message)
	if err == nil && !s.Verify(message, signature) {
		err = errors.New("the external signer's signature is not that of the configured public key")
	}
	return signature, err
}

// ReadSigner reads a signer key from a file that only its owner may read.
func ReadSigner(path string) (*Signer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, keyError(fmt.Sprintf("cannot open the signing key %q", path), err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, keyError(fmt.Sprintf("cannot open the signing key %q", path), err)
	}
	if !info.Mode().IsRegular() {
		return nil, keyError(fmt.Sprintf("the signing key %q is not a regular file", path), nil)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, keyError(fmt.Sprintf("cannot read the signing key %q", path), err)
	}
	if _, err := parseKey(strings.TrimSpace(string(text))); err == nil {
		return nil, keyError(fmt.Sprintf("%q is a public key, which cannot sign", path), nil)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, keyError(fmt.Sprintf("the signing key %q is open to others (chmod 600)", path), nil)
	}
	return NewSigner(strings.TrimSuffix(string(text), "\n"))
}

// GenerateKey returns the text of a new signer key, a secret, for NewSigner. A name has the
// characters of an origin.
func GenerateKey(name string) (string, error) {
	if !validName(name) {
		return "", &proposal.StopError{Code: "audit.key", Message: fmt.Sprintf("invalid key name %q", name),
			Hint: "use 1 to 200 of A-Z a-z 0-9 . _ ~ : / @ % -, for example acme.example/fumehood"}
	}
	text, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return "", keyError("cannot make a signing key", err)
	}
	return text, nil
}

// ephemeralSigner returns a Signer whose private key exists only in this process.
func ephemeralSigner(name string) (*Signer, error) {
	text, err := GenerateKey(name)
	if err != nil {
		return nil, err
	}
	return NewSigner(text)
}

func keyError(message string, cause error) error {
	return &proposal.StopError{
		Code: "audit.key", Message: message, Err: cause,
		Hint: "give a file of mode 600 as fumehood key generate FILE --log NAME writes it",
	}
}
