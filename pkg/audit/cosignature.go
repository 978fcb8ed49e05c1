// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// algorithmCosign is the algorithm byte of C2SP tlog-cosignature, version 1. A log's key has 1.
const algorithmCosign = 4

// maxCosigned is the maximum size of a cosigned checkpoint in bytes. One signature has less
// than 600.
const maxCosigned = 64 << 10

// A cosigner verifies cosignatures by one key. It implements note.Verifier.
type cosigner struct {
	name string
	hash uint32
	key  ed25519.PublicKey
	at   time.Time // in the last cosignature that Verify accepted, by the cosigner's clock
}

// cosignerOf returns the cosigner with the key that key, a log's verifier key, is of.
func cosignerOf(key string) (*cosigner, error) {
	v, err := parseKey(strings.TrimSpace(key))
	if err != nil {
		return nil, err
	}
	data := strings.TrimSpace(key)[len(v.Name())+len("+01234567+"):]
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, err
	}
	return newCosigner(v.Name(), raw[1:]), nil
}

func newCosigner(name string, key ed25519.PublicKey) *cosigner {
	sum := sha256.Sum256(append([]byte(name+"\n"), append([]byte{algorithmCosign}, key...)...))
	return &cosigner{name: name, hash: binary.BigEndian.Uint32(sum[:]), key: key}
}

// Name returns the cosigner's name.
func (c *cosigner) Name() string { return c.name }

// KeyHash returns the hash that its signatures begin with.
func (c *cosigner) KeyHash() uint32 { return c.hash }

// Verify checks eight bytes of a POSIX time, big-endian, and a signature of it and text.
func (c *cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	if !ed25519.Verify(c.key, cosignedText(seconds, string(text)), signature[8:]) {
		return false
	}
	c.at = time.Unix(int64(seconds), 0).UTC()
	return true
}

// cosignedText is what a cosignature signs. Its first lines keep it apart from what signs a
// log: a checkpoint's second line is a number.
func cosignedText(seconds uint64, text string) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)
}

// Cosign returns checkpoint, a signed note of a sealed log (Summary.Checkpoint), with a
// cosignature by s that has this time, in seconds. It does not check the note's own signature:
// the caller has verified the log.
func (s *Signer) Cosign(checkpoint string, at time.Time) (string, error) {
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	text += "\n"
	if point, err := parseCheckpoint(text); err != nil || !point.sealed {
		return "", errors.New("cannot cosign what is not the seal of a log")
	}
	c, err := cosignerOf(s.key)
	if err != nil {
		return "", err
	}
	seconds := uint64(max(at.Unix(), 0))
	signature, err := s.signer.Sign(cosignedText(seconds, text))
	if err != nil {
		return "", keyError("cannot cosign the checkpoint", nil)
	}
	data := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, c.hash), seconds)
	return checkpoint + "— " + c.name + " " + base64.StdEncoding.EncodeToString(append(data, signature...)) + "\n", nil
}

// A Cosignature says who has cosigned the seal of a log, and when.
type Cosignature struct {
	Key  string    `json:"key"` // the log key in Trust, whose holder has cosigned
	Time time.Time `json:"time"`
}

// openCosigned returns the checkpoint as the log has it, if key has cosigned it and it is a
// seal.
func openCosigned(cosigned, key string) (checkpoint string, by Cosignature, err error) {
	c, err := cosignerOf(key)
	if err != nil {
		return "", by, err
	}
	if len(cosigned) > maxCosigned {
		return "", by, fmt.Errorf("cosigned checkpoint is larger than %d bytes", maxCosigned)
	}
	n, err := note.Open([]byte(cosigned), note.VerifierList(c))
	if err != nil {
		return "", by, fmt.Errorf("checkpoint is not cosigned by %s", c.name)
	}
	if point, err := parseCheckpoint(n.Text); err != nil || !point.sealed {
		return "", by, errors.New("cosigned checkpoint is not the seal of a log")
	}
	signature, _, _ := strings.Cut(cosigned[len(n.Text)+1:], "\n") // the log's own is the first
	return n.Text + "\n" + signature + "\n", Cosignature{strings.TrimSpace(key), c.at}, nil
}

// ReadCosigned reads the cosigned checkpoint in the file at path, for Trust.Cosigned. Its error
// is a *proposal.StopError.
func ReadCosigned(path string) (string, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxCosigned+1)); err == nil && len(data) > 0 {
			return string(data), nil // "" would ask for nothing
		}
	}
	return "", &proposal.StopError{Code: "audit.not-readable",
		Message: fmt.Sprintf("cannot read the cosigned checkpoint %q", path),
		Hint:    "name the audit.cosigned of the job that reported the run", Err: err}
}
