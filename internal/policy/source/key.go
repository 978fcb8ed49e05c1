// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

const (
	maxKey    = 64 << 10
	minSecret = 32
	minRSA    = 2048
	// secretPrefix marks the file of a shared secret. If a public key were taken for a
	// shared secret by mistake, anyone could sign.
	secretPrefix = "hs256:"
)

// A Key verifies bundles.
type Key struct {
	name       string // SHA-256 of the public key; "" for a shared secret
	material   string // PEM, or the secret
	algorithms []string
}

const hintKey = "give a PEM file with public keys (fumehood key public FILE), or hs256:FILE with a secret of at least 32 bytes"

// Keys are keys of which any one may have signed a bundle, so that bundles can be signed
// with a new key while older ones are in use. Without keys no signature is required.
type Keys []*Key

const hintRemove = "remove keys that no longer sign"

// maxKeys bounds the keys that are tried.
const maxKeys = 16

// ReadKeys reads the public keys of PEM files: RSA of 2048 bits or more, ECDSA, Ed25519. A
// file has at most 16 keys, and so have all of them. A certificate, whose chain and dates
// are not checked, must be alone in its file: a chain would also trust its issuer. A file
// named as hs256:FILE is a shared secret, which is all of the file.
func ReadKeys(files []string) (Keys, error) {
	var keys Keys
	for _, file := range files {
		more, err := readKeys(file)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, more...); len(keys) > maxKeys {
			return nil, stopError(CodeKey, hintRemove, nil, "more than %d keys are given", maxKeys)
		}
	}
	return keys, nil
}

func readKeys(file string) (Keys, error) {
	path, shared := strings.CutPrefix(file, secretPrefix)
	data, err := keyBytes(path, hintKey)
	if err != nil {
		return nil, err
	}
	if shared {
		k, err := secretKey(path, data)
		return Keys{k}, err
	}
	return publicKeys(path, data)
}

func secretKey(path string, data []byte) (*Key, error) {
	if len(data) < minSecret || strings.Contains(string(data), "-----BEGIN") {
		return nil, stopError(CodeKey, hintKey, nil, "%q does not contain a secret of at least %d bytes", path,
			minSecret)
	}
	return &Key{name: "HS256", material: string(data), algorithms: []string{"HS256", "HS384", "HS512"}}, nil
}

// publicKeys reads every PEM block of data. Text between them that begins a block is an
// error, so that no key is overlooked.
func publicKeys(path string, data []byte) (keys Keys, err error) {
	blocks := strings.Count(string(data), "-----BEGIN")
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" && blocks > 1 {
			return nil, stopError(CodeKey, hintKey, nil, "%q contains a certificate beside other keys", path)
		}
		public, err := publicKey(block)
		if err != nil {
			return nil, stopError(CodeKey, hintKey, err, "invalid key in %q", path)
		}
		k, err := keyOf(path, public)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, k); len(keys) > maxKeys {
			return nil, stopError(CodeKey, hintRemove, nil, "%q contains more than %d keys", path, maxKeys)
		}
	}
	if len(keys) == 0 || len(keys) != blocks {
		return nil, stopError(CodeKey, hintKey, nil, "%q does not contain only complete PEM keys", path)
	}
	return keys, nil
}

func keyBytes(path, hint string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, stopError(CodeKey, hint, err, "cannot open the key %q", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(f, maxKey+1))
	}
	if err == nil && len(data) > maxKey {
		err = errTooLarge
	}
	if err != nil {
		return nil, stopError(CodeKey, hint, err, "cannot read the key %q", path)
	}
	return data, nil
}

func publicKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("it is a private key, which only the signer must have")
	}
	return nil, errors.New("it is a " + block.Type)
}

func keyOf(path string, public any) (*Key, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, stopError(CodeKey, hintKey, err, "invalid key in %q", path)
	}
	k := &Key{name: Digest(der), material: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		algorithms: algorithmsOf(public)}
	if k.algorithms == nil {
		return nil, stopError(CodeKey, hintKey, nil, "the key in %q is too short or of an unsupported kind", path)
	}
	return k, nil
}

// algorithmsOf are the algorithms for a key of this kind, the usual one first.
func algorithmsOf(public any) []string {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSA {
			return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return []string{"ES256"}
		case 384:
			return []string{"ES384"}
		case 521:
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}
