// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/fumehood/fumehood/internal/policy"
)

// A Signer signs bundles.
type Signer struct {
	file      string
	algorithm string
	public    crypto.PublicKey // nil for a shared secret
}

// PublicPEM returns the PEM text of the public key, which verifies what s signs. A shared
// secret has none.
func (s *Signer) PublicPEM() (string, error) {
	if s.public == nil {
		return "", stopError(CodeKey, "give a PEM file with a private key", nil, "a shared secret has no public key")
	}
	k, err := keyOf(s.file, s.public)
	if err != nil {
		return "", err
	}
	return k.material, nil
}

// DefaultKeyID is the default name of the key in a signature, which opa run looks for by
// default.
const DefaultKeyID = "default"

const hintSigner = "give a PEM file with a private key (fumehood key generate FILE --bundle), or hs256:FILE with a secret of at least 32 bytes"

// ReadSigner reads a private key from a PEM file without a password or, for hs256:FILE, a
// shared secret.
func ReadSigner(file string) (*Signer, error) {
	path, shared := strings.CutPrefix(file, secretPrefix)
	if shared {
		k, err := readKeys(file)
		if err != nil {
			return nil, err
		}
		return &Signer{file: path, algorithm: k[0].algorithms[0]}, nil
	}
	data, err := keyBytes(path, hintSigner)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(data), "-----BEGIN") {
		return nil, stopError(CodeKey, hintSigner, nil, "%q does not begin with a PEM key", path)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, stopError(CodeKey, hintSigner, nil, "%q does not contain a PEM key", path)
	}
	private, err := privateKey(block)
	if err != nil {
		return nil, stopError(CodeKey, hintSigner, err, "invalid key in %q", path)
	}
	algorithms := algorithmsOf(private.Public())
	if algorithms == nil {
		return nil, stopError(CodeKey, hintSigner, nil, "the key in %q is too short or of an unsupported kind", path)
	}
	return &Signer{path, algorithms[0], private.Public()}, nil
}

func privateKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = errors.New("it is a " + block.Type)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("this kind of key cannot sign")
	}
	return signer, nil
}

// A Signing is the input of a signature.
type Signing struct {
	Key   string // as for ReadSigner; "" for no signature
	KeyID string // the key's name in the signature
	Scope string // may be ""
}

// Sign signs data, the bundle called name, if there is a key.
func (s Signing) Sign(name string, data []byte) ([]byte, error) {
	if s.Key == "" {
		return data, nil
	}
	signer, err := ReadSigner(s.Key)
	if err != nil {
		return nil, err
	}
	return signer.Sign(name, data, s.KeyID, s.Scope)
}

// Sign adds a signature of all files to a bundle and replaces an existing one. Scope may be
// "".
func (s *Signer) Sign(name string, data []byte, keyID, scope string) ([]byte, error) {
	if _, err := Open(name, data, Options{}); err != nil {
		return nil, err
	}
	files, err := unpackArchive(data)
	if err != nil {
		return nil, notBundle(name, err)
	}
	files = slices.DeleteFunc(files, func(f policy.File) bool { return f.Name == signaturesName })
	var signed []bundle.FileInfo
	for _, f := range files {
		info, err := hashFile(f)
		if err != nil {
			return nil, notBundle(name, err)
		}
		signed = append(signed, info)
	}
	slices.SortFunc(signed, func(a, b bundle.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	token, err := s.signToken(signed, keyID, scope)
	if err != nil {
		return nil, stopError(CodeKey, hintSigner, err, "cannot sign %s", name)
	}
	content, err := json.Marshal(bundle.SignaturesConfig{Signatures: []string{token}})
	if err != nil {
		return nil, notBundle(name, err)
	}
	return packFiles(append(files, policy.File{Name: signaturesName, Content: content}))
}

// signToken makes the JWT with opa, which reads further claims only from a file.
func (s *Signer) signToken(files []bundle.FileInfo, keyID, scope string) (string, error) {
	claims := map[string]string{"keyid": keyID}
	if scope != "" {
		claims["scope"] = scope
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "fumehood-claims-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return bundle.GenerateSignedToken(files, bundle.NewSigningConfig(s.file, s.algorithm, f.Name()), keyID)
}
