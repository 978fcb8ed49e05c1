// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// cosigned is the algorithm byte of C2SP tlog-cosignature, version 1.
const cosigned = 4

// A witness verifies cosignatures of one key. It implements note.Verifier.
type witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
	at   *time.Time // set by Verify
}

func (w witness) Name() string    { return w.name }
func (w witness) KeyHash() uint32 { return w.hash }

// Verify checks eight bytes of a POSIX time, big-endian, and a signature of it and the note.
func (w witness) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(signature)
	*w.at = time.Unix(int64(seconds), 0).UTC()
	return ed25519.Verify(w.key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text), signature[8:])
}

// parseWitness reads NAME+HASH+KEY, with the algorithm byte of cosignatures.
func parseWitness(text string) (w witness, err error) {
	parts := strings.SplitN(strings.TrimSpace(text), "+", 3)
	bad := stop(CodeKey, fmt.Sprintf("%q is not the key of a witness", text), "give NAME+HASH+KEY as the witness publishes it", nil)
	if len(parts) != 3 {
		return w, bad
	}
	hash, e1 := strconv.ParseUint(parts[1], 16, 32)
	key, e2 := base64.StdEncoding.DecodeString(parts[2])
	if e1 != nil || e2 != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != cosigned {
		return w, bad
	}
	sum := sha256.Sum256(append([]byte(parts[0]+"\n"), key...))
	if uint64(binary.BigEndian.Uint32(sum[:])) != hash {
		return w, bad
	}
	return witness{parts[0], uint32(hash), key[1:], new(time.Time)}, nil
}

// Witnessed checks that every one of these witnesses has cosigned h, and returns the time of
// the oldest cosignature.
func (l *Ledger) Witnessed(h Head, keys []string) (oldest time.Time, err error) {
	for _, text := range keys {
		w, err := parseWitness(text)
		if err != nil {
			return oldest, err
		}
		if _, err := note.Open([]byte(h.Signed), note.VerifierList(w)); err != nil {
			return oldest, stop(CodeWitness, fmt.Sprintf("the witness %s has not signed the ledger's checkpoint", w.name), "wait until it has, or ask why it does not", err)
		}
		if oldest.IsZero() || w.at.Before(oldest) {
			oldest = *w.at
		}
	}
	return oldest, nil
}
