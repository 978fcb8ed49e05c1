// SPDX-License-Identifier: Apache-2.0

package key

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// commandPrefix begins the name of a file that describes a command that signs.
const commandPrefix = "command:"

// signTime is how long a command may take if its file does not say.
const signTime = 10 * time.Second

// maxAnswer is how much a command may print: far more than a signature.
const maxAnswer = 4096

// A signCommand is a program that has a private key. Its file is JSON:
//
//	{"name": "acme.example/fumehood", "public": "MCowBQYDK2VwAyEA…", "command": ["/usr/local/bin/sign-log"]}
//
// It reads a message from standard input and writes the message's Ed25519 signature to standard output, raw or
// in base64. It is started once for each checkpoint, without a shell, with the environment of fumehood.
type signCommand struct {
	Name    string   `json:"name"`    // the key's, as of key generate --log
	Public  []byte   `json:"public"`  // SubjectPublicKeyInfo: the base64 of a PEM
	Command []string `json:"command"` // an absolute path and arguments
	Timeout string   `json:"timeout"` // "10s" if empty

	key   ed25519.PublicKey
	limit time.Duration
}

// ReadSigner returns what signs logs: the private key in the file name or, for command:FILE, the command
// that FILE describes, which only this user and root may change. Errors have the code audit.key or
// key.command.
func ReadSigner(name string) (*audit.Signer, error) {
	file, is := strings.CutPrefix(name, commandPrefix)
	if !is {
		return audit.ReadSigner(name)
	}
	c, err := readCommand(file)
	if err != nil {
		return nil, commandError(fmt.Sprintf("cannot use %q, which describes a command that signs", file), err)
	}
	return audit.NewExternalSigner(c.Name, c.key, c.sign)
}

func readCommand(file string) (c signCommand, err error) {
	if file, err = filepath.Abs(file); err != nil {
		return c, err
	}
	if err := process.CheckPrivate(file, os.Geteuid()); err != nil {
		return c, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := strictjson.Decode(text, &c); err != nil {
		return c, err
	}
	public, err := x509.ParsePKIXPublicKey(c.Public)
	if err != nil {
		return c, fmt.Errorf("invalid public key: %w", err)
	}
	var is bool
	if c.key, is = public.(ed25519.PublicKey); !is {
		return c, errors.New("unsupported public key: it is not of Ed25519")
	}
	if len(c.Command) == 0 || !filepath.IsAbs(c.Command[0]) {
		return c, fmt.Errorf("invalid command %q: it must begin with an absolute path", c.Command)
	}
	if c.limit = signTime; c.Timeout != "" {
		c.limit, err = time.ParseDuration(c.Timeout)
	}
	if err != nil || c.limit <= 0 || c.limit > time.Minute {
		return c, fmt.Errorf("invalid timeout %q: use up to 1m", c.Timeout)
	}
	return c, process.CheckPrivate(c.Command[0], os.Geteuid())
}

// sign returns the command's signature of a message. audit verifies it.
func (c signCommand) sign(message []byte) ([]byte, error) {
	program := process.Program{Path: c.Command[0], Args: c.Command[1:], Timeout: c.limit,
		MaxOutput: maxAnswer, Env: os.Environ()} // PINs and the credentials of key services
	out, said, err := program.Run(context.Background(), message)
	if err != nil {
		return nil, commandError(fmt.Sprintf("the command %q does not sign: %.500q", c.Command[0], said), err)
	}
	if len(out) == ed25519.SignatureSize {
		return out, nil
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(out)))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return nil, commandError(fmt.Sprintf("what the command %q prints is not a signature", c.Command[0]), nil)
	}
	return signature, nil
}

func commandError(message string, err error) error {
	return &proposal.StopError{Code: "key.command", Message: message, Err: err,
		Hint: `see "Keys in hardware" in docs/EVIDENCE.md`}
}
