// SPDX-License-Identifier: Apache-2.0

// Package key makes the keys that sign audit logs and policy bundles, and prints their
// public halves. All are Ed25519. It does not encrypt private keys: a file's mode and the
// secret store that it is moved to protect them.
package key

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// logPrefix begins the text of a log's private key.
const logPrefix = "PRIVATE+KEY+"

// GenerateLog writes a new key that signs logs (--audit-key) to a new file at path, of mode
// 0600, and returns the verifier key (verify --key). name is part of both; it has the
// characters of a log's origin. Errors are those of Public, and key.exists for a path that
// exists, also as a link, and key.not-writable.
func GenerateLog(path, name string) (string, error) {
	private, err := audit.GenerateKey(name)
	if err != nil {
		return "", err
	}
	return writeNewKey(path, []byte(private+"\n"))
}

// GenerateBundle is GenerateLog for a key that signs policy bundles (--signing-key). The
// public key (--policy-key) is PEM text.
func GenerateBundle(path string) (string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	return writeNewKey(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// ReadPublic returns the public half of the private key at path: a log's, or any that can sign
// bundles; or the one in a command's file, for command:FILE. It ends in a newline. Errors have the code
// audit.key, policy.key or key.command.
func ReadPublic(path string) (string, error) {
	if strings.HasPrefix(path, commandPrefix) {
		s, err := ReadSigner(path)
		if err != nil {
			return "", err
		}
		return s.Key() + "\n", nil
	}
	log, err := isLog(path)
	if err != nil {
		return "", &proposal.StopError{Code: "policy.key", Message: fmt.Sprintf("cannot read the key %q", path),
			Err:  err,
			Hint: "give a file that fumehood key generate wrote"}
	}
	if log {
		s, err := audit.ReadSigner(path)
		if err != nil {
			return "", err
		}
		return s.Key() + "\n", nil
	}
	s, err := source.ReadSigner(path)
	if stop, ok := errors.AsType[*proposal.StopError](err); ok {
		stop.Hint = "give a file with a private key, as fumehood key generate writes it"
	}
	if err != nil {
		return "", err
	}
	return s.PublicPEM()
}

func isLog(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(logPrefix))
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return bytes.Equal(head[:n], []byte(logPrefix)), err
}

// writeNewKey writes a private key to a new file and returns the public half of what is there.
func writeNewKey(path string, private []byte) (string, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", &proposal.StopError{Code: "key.exists", Message: fmt.Sprintf("the file %q exists already", path),
			Hint: "name a new file: a private key is never overwritten"}
	}
	if err == nil {
		_, err = f.Write(private)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return "", &proposal.StopError{Code: "key.not-writable", Message: fmt.Sprintf("cannot write the key %q", path),
			Err:  err,
			Hint: "name a new file in an existing directory, and remove what was left there"}
	}
	return ReadPublic(path)
}
