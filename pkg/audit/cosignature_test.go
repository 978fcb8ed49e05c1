// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// cosignedLog returns a sealed log, and its seal, cosigned with the key of "acme".
func cosignedLog(t *testing.T) (log []byte, cosigned string, at time.Time) {
	t.Helper()
	log = memoryLog(t, "k", "o", vectorBodies(), true)
	sum, err := Verify(bytes.NewReader(log), Trust{})
	if err != nil {
		t.Fatal(err)
	}
	at = time.Unix(1_700_000_000, 0).UTC()
	if cosigned, err = testSigner(t, "acme").Cosign(sum.Checkpoint, at); err != nil {
		t.Fatal(err)
	}
	return log, cosigned, at
}

// A cosigned log is complete. So it is with the line of another cosigner, and with a line that
// is made here as C2SP tlog-cosignature says.
func TestCosigned(t *testing.T) {
	log, cosigned, at := cosignedLog(t)
	key := testSigner(t, "acme").Key()
	second, err := testSigner(t, "second").Cosign(cosigned, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Cosign": cosigned, "two": second, "by hand": cosignByHand(t, cosigned, "acme", uint64(at.Unix()))} {
		got, err := Verify(bytes.NewReader(log), Trust{Key: key, Cosigned: text})
		if err != nil || !got.Complete() || got.Cosigned != (Cosignature{key, at}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if want := "cosigned with " + key + " at 2023-11-14T22:13:20Z"; !strings.HasSuffix(got.String(), want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The vector for other implementations is what Cosign writes.
func TestCosignedVector(t *testing.T) {
	log, err := os.ReadFile(filepath.Join(vectorDir, "sealed.log"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Verify(bytes.NewReader(log), Trust{})
	if err != nil {
		t.Fatal(err)
	}
	signer, file := testSigner(t, "vectors.example/witness"), filepath.Join(vectorDir, "sealed.cosigned")
	cosigned, err := signer.Cosign(sum.Checkpoint, time.Unix(1_700_000_000, 0))
	if err == nil && *update {
		err = os.WriteFile(file, []byte(cosigned), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if vector, err := ReadCosigned(file); err != nil || vector != cosigned {
		t.Fatalf("%v, %q, want %q", err, vector, cosigned)
	}
	if got, err := Verify(bytes.NewReader(log), Trust{Key: signer.Key(), Cosigned: cosigned}); err != nil || !got.Complete() {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"none", os.DevNull} {
		if text, err := ReadCosigned(name); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// cosignByHand replaces the cosignature of a note.
func cosignByHand(t *testing.T, cosigned, name string, seconds uint64) string {
	t.Helper()
	seed, err := base64.StdEncoding.DecodeString(strings.SplitN(testKey(name), "+", 5)[4])
	if err != nil {
		t.Fatal(err)
	}
	private := ed25519.NewKeyFromSeed(seed[1:])
	id := sha256.Sum256(slices.Concat([]byte(name+"\n\x04"), private.Public().(ed25519.PublicKey)))
	text, signatures, _ := strings.Cut(cosigned, "\n\n")
	first, _, _ := strings.Cut(signatures, "\n")
	signature := ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", seconds, text))
	raw := slices.Concat(id[:4], binary.BigEndian.AppendUint64(nil, seconds), signature)
	return text + "\n\n" + first + "\n— " + name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// THREATS 93: no changed byte of a cosigned checkpoint is accepted, and no other key, log or kind of
// signature.
func TestCosignedRefuses(t *testing.T) {
	log, cosigned, at := cosignedLog(t)
	acme := testSigner(t, "acme")
	for i := range cosigned {
		for _, bad := range []string{cosigned[:i] + string(cosigned[i]^1) + cosigned[i+1:], cosigned[:i] + cosigned[i+1:], cosigned[:i]} {
			if got, err := Verify(bytes.NewReader(log), Trust{Key: acme.Key(), Cosigned: bad}); bad != "" && (err == nil || got.Complete()) {
				t.Fatalf("changed at byte %d, accepted: %+v\n%s", i, got, bad)
			}
		}
	}
	text, signatures, _ := strings.Cut(cosigned, "\n\n")
	own, line, _ := strings.Cut(signatures, "\n")
	logSigned, err := note.Sign(&note.Note{Text: text + "\n"}, acme.signer)
	if err != nil {
		t.Fatal(err)
	}
	_, plain, _ := strings.Cut(string(logSigned), "\n\n")
	bodies := vectorBodies()
	slices.Reverse(bodies)
	other := memoryLog(t, "k", "o", bodies, true)
	forged := memoryLog(t, "forger", "o", vectorBodies(), true)
	tests := map[string]struct {
		log   []byte
		trust Trust
		code  string
	}{
		"another key":                 {log, Trust{Key: testSigner(t, "other").Key(), Cosigned: cosigned}, codeCosigned},
		"the log's key":               {log, Trust{Key: testSigner(t, "k").Key(), Cosigned: cosigned}, codeCosigned},
		"no key":                      {log, Trust{Cosigned: cosigned}, codeCosigned},
		"only the log's signature":    {log, Trust{Key: acme.Key(), Cosigned: text + "\n\n" + own + "\n"}, codeCosigned},
		"a signature of logs":         {log, Trust{Key: acme.Key(), Cosigned: text + "\n\n" + own + "\n" + plain}, codeCosigned},
		"in another order":            {log, Trust{Key: acme.Key(), Cosigned: text + "\n\n" + line + own + "\n"}, codeForked},
		"too large":                   {log, Trust{Key: acme.Key(), Cosigned: cosigned + strings.Repeat("\n", maxCosigned)}, codeCosigned},
		"another log of this key":     {other, Trust{Key: acme.Key(), Cosigned: cosigned}, codeForked},
		"the same, signed by another": {forged, Trust{Key: acme.Key(), Cosigned: cosigned}, codeForked},
		"cut short":                   {log[:len(log)-2], Trust{Key: acme.Key(), Cosigned: cosigned}, codeTruncated},
		"more than the seal":          {append(bytes.Clone(log), '\n'), Trust{Key: acme.Key(), Cosigned: cosigned}, codeAfterSeal},
	}
	for name, tt := range tests {
		got, err := Verify(bytes.NewReader(tt.log), tt.trust)
		var fault *VerifyError
		if !errors.As(err, &fault) || fault.Code != tt.code || got.Complete() || got.Cosigned != (Cosignature{}) {
			t.Errorf("%s: %+v, %v, want %s", name, got, err, tt.code)
		}
	}
	unsealed, err := Verify(bytes.NewReader(memoryLog(t, "k", "o", vectorBodies(), false)), Trust{})
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range []string{unsealed.Checkpoint, "", "x\n\ny\n"} {
		if got, err := acme.Cosign(note, at); err == nil {
			t.Errorf("cosigned %q: %s", note, got)
		}
	}
}
